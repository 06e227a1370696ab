#pragma once

#include <string>
#include <vector>

#include "axis.hpp"
#include "mask_picture.hpp"

namespace tilewright::picture {

/// The drawing of svg_picture and png_picture: where everything stands is decided first, then
/// it is drawn on any canvas.
class MaskDrawing {
 public:
  MaskDrawing(const BlockMask& mask, const MaskPictureOptions& options);

  double width() const { return width_; }
  double height() const { return height_; }
  void draw(Canvas& canvas) const;

 private:
  // What a list looks like.
  struct Panel {
    ListIndex list;
    std::string caption;
    Cells cells;
    ScoreCells scores;
  };
  struct Entry {
    Color color;
    std::string words;
  };

  void choose_lists();
  void choose_size();
  void fill_panels();
  void color_scores();
  void lay_out();
  std::vector<std::string> headings() const;
  std::vector<Entry> legend() const;
  std::vector<std::string> notes() const;
  bool shows_elements() const;

  void draw_heading(Canvas& canvas) const;
  void draw_panel(Canvas& canvas, const Panel& panel, double x, double y) const;
  void draw_plot(Canvas& canvas, const Cells& cells, const Rect& area, bool with_rows) const;
  void draw_tile_borders(Canvas& canvas, const Cells& cells, const Rect& area) const;
  void draw_legend(Canvas& canvas, double y) const;
  void draw_score_scale(Canvas& canvas, double x, double y) const;

  const BlockMask& mask_;
  const MaskPictureOptions& options_;
  std::vector<Panel> panels_;
  std::int64_t lists_ = 1;  // that there are, drawn or not
  std::int64_t columns_ = 1;
  double plot_limit_ = 0;  // of a plot's longer side
  double plot_width_ = 0;
  double plot_height_ = 0;
  std::vector<Tick> row_ticks_;
  std::vector<Tick> column_ticks_;
  double row_label_width_ = 0;
  double panel_width_ = 0;
  double panel_height_ = 0;
  double width_ = 0;
  double height_ = 0;
  float least_score_ = 0;
  float greatest_score_ = 0;
  bool has_scores_ = false;  // any finite one
};

}  // namespace tilewright::picture
