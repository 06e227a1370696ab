#include "picture/mask_drawing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"

namespace tilewright::picture {
namespace {

// Everything is in units of a screen's pixel.
constexpr double kMargin = 20;
constexpr double kTitleSize = 17;
constexpr double kTextSize = 12;
constexpr double kLabelSize = 10.5;
constexpr double kLineHeight = 17;
constexpr double kGap = 26;  // between plots
constexpr double kCaptionHeight = 18;
constexpr double kAxisHeight = 36;  // the column axis' name and labels
constexpr double kTickLength = 4;
constexpr double kLeastSide = 36;  // of a plot, however unequal the lengths are
constexpr double kLeastTile = 5;   // of which borders are drawn
constexpr double kSwatch = 12;
constexpr double kScaleWidth = 180;
constexpr double kPixelsPerUnit = 2;  // cells are whole pixels of a PNG

struct PanelSize {
  std::size_t panels;  // up to
  double side;
  std::int64_t columns;
};
constexpr std::array<PanelSize, 4> kPanelSizes = {
    {{1, 480, 1}, {4, 300, 2}, {9, 220, 3}, {SIZE_MAX, 170, 4}}};

// A length near the wanted one in which every cell is a whole number of pixels.
double snapped(double wanted, std::int64_t tokens, std::int64_t tokens_of_cell) {
  const double cells = static_cast<double>(tokens) / static_cast<double>(tokens_of_cell);
  const double exact = wanted * kPixelsPerUnit / cells;
  double pixels = std::round(exact);
  if (pixels > 1.15 * exact) pixels = std::floor(exact);
  return pixels < 1 ? wanted : cells * pixels / kPixelsPerUnit;
}

std::string shortened(const std::string& words, std::size_t max_bytes) {
  if (words.size() <= max_bytes) return words;
  std::size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(words[end]) & 0xC0) == 0x80) --end;
  return words.substr(0, end) + "...";
}

std::string percent(double share) {
  const double value = 100 * share;
  // What is not nothing, or not everything, does not read as if it were.
  if (value > 0 && value < 0.05) return "under 0.1 %";
  if (value < 100 && value > 99.95) return "over 99.9 %";
  return fmt::format("{:.1f} %", value);
}

}  // namespace

MaskDrawing::MaskDrawing(const BlockMask& mask, const MaskPictureOptions& options)
    : mask_(mask), options_(options) {
  choose_lists();
  choose_size();
  fill_panels();
  if (options_.scores) color_scores();
  lay_out();
}

bool MaskDrawing::shows_elements() const {
  const Shape& shape = mask_.fingerprint().shape;
  return options_.elements && shape.q_len <= kMaxElements && shape.kv_len <= kMaxElements;
}

void MaskDrawing::choose_lists() {
  const std::int64_t batch = std::max(mask_.batch(), options_.batch);
  const std::int64_t heads = std::max(mask_.heads(), options_.heads);
  const auto require = [](std::string_view what, std::optional<std::int64_t> chosen,
                          std::int64_t count) {
    if (!chosen || count == 1 || (*chosen >= 0 && *chosen < count)) return;
    throw Error(ErrorCode::usage, fmt::format("there is no {} {} in the mask: it has 0 to {}", what,
                                              *chosen, count - 1));
  };
  require("batch", options_.b, batch);
  require("head", options_.h, heads);
  lists_ = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    if (options_.b && batch > 1 && b != *options_.b) continue;
    for (std::int64_t h = 0; h < heads; ++h) {
      if (options_.h && heads > 1 && h != *options_.h) continue;
      if (lists_++ >= options_.max_lists) continue;
      Panel panel{
          .list = {batch > 1 ? b : options_.b.value_or(0), heads > 1 ? h : options_.h.value_or(0)},
          .caption = {},
          .cells = {},
          .scores = {}};
      std::string name = batch > 1 ? fmt::format("batch {}", b) : "";
      if (heads > 1) name += fmt::format("{}head {}", name.empty() ? "" : ", ", h);
      panel.caption = name;
      panels_.push_back(std::move(panel));
    }
  }
}

void MaskDrawing::choose_size() {
  const PanelSize& size =
      *std::find_if(kPanelSizes.begin(), kPanelSizes.end(),
                    [&](const PanelSize& s) { return panels_.size() <= s.panels; });
  plot_limit_ = size.side;
  columns_ = std::min(size.columns, static_cast<std::int64_t>(panels_.size()));
  if (options_.scores) columns_ = std::min<std::int64_t>(columns_, 2);
}

void MaskDrawing::fill_panels() {
  const auto max_cells = static_cast<std::int64_t>(plot_limit_ * 2 / 3);
  for (Panel& panel : panels_) {
    panel.cells = shows_elements() ? element_cells(mask_, panel.list, options_.read, max_cells)
                                   : tile_cells(mask_, panel.list, max_cells);
    if (options_.scores) panel.scores = score_cells(mask_, panel.list, options_.read, max_cells);
    if (panels_.size() == 1) continue;
    const TileCounts tiles = count_tiles(mask_, panel.list);
    const double all = static_cast<double>(mask_.q_blocks() * mask_.kv_blocks());
    panel.caption +=
        fmt::format(": {}", percent(static_cast<double>(tiles.partial + tiles.full) / all));
  }
}

// One scale for all lists, so that heads can be compared.
void MaskDrawing::color_scores() {
  for (const Panel& panel : panels_) {
    for (const float value : panel.scores.values) {
      if (std::isnan(value)) continue;
      least_score_ = has_scores_ ? std::min(least_score_, value) : value;
      greatest_score_ = has_scores_ ? std::max(greatest_score_, value) : value;
      has_scores_ = true;
    }
  }
  const double range = double{greatest_score_} - least_score_;
  for (Panel& panel : panels_) {
    for (const float value : panel.scores.values) {
      // 64 colours, as eyes tell no more apart and an SVG grows with them.
      const double share = range == 0 ? 0.5 : (double{value} - least_score_) / range;
      panel.scores.layout.colors.push_back(std::isnan(value) ? kEmpty
                                                             : heat(std::round(share * 63) / 63));
    }
  }
}

void MaskDrawing::lay_out() {
  const Shape& shape = mask_.fingerprint().shape;
  const Cells& cells = panels_.front().cells;
  const double longer = static_cast<double>(std::max(shape.q_len, shape.kv_len));
  const auto side = [&](std::int64_t tokens, std::int64_t tokens_of_cell) {
    const double wanted = plot_limit_ * static_cast<double>(tokens) / longer;
    return snapped(std::max(wanted, kLeastSide), tokens, tokens_of_cell);
  };
  plot_width_ = side(shape.kv_len, cells.tokens_across);
  plot_height_ = side(shape.q_len, cells.tokens_down);

  row_ticks_ = axis_ticks(shape.q_len, mask_.block()[0], shape.q_offset,
                          std::max<std::int64_t>(2, static_cast<std::int64_t>(plot_height_ / 34)));
  const double label = width_of(std::to_string(shape.kv_len + shape.kv_offset), kLabelSize);
  column_ticks_ =
      axis_ticks(shape.kv_len, mask_.block()[1], shape.kv_offset,
                 std::max<std::int64_t>(2, static_cast<std::int64_t>(plot_width_ / (label + 8))));
  row_label_width_ = width_of("q_idx ↓", kLabelSize);
  for (const Tick& tick : row_ticks_) {
    row_label_width_ = std::max(row_label_width_, width_of(tick.label, kLabelSize));
  }
  row_label_width_ += kTickLength + 4;
  const double plots = options_.scores ? 2 * plot_width_ + kGap : plot_width_;
  panel_width_ = row_label_width_ + plots;
  const bool captions = panels_.size() > 1 || options_.scores;
  panel_height_ = (captions ? kCaptionHeight : 0) + kAxisHeight + plot_height_;

  const auto columns = static_cast<double>(columns_);
  const auto rows =
      static_cast<double>(ceil_div(static_cast<std::int64_t>(panels_.size()), columns_));
  double content = columns * panel_width_ + (columns - 1) * kGap;
  content = std::max(content, width_of(shortened(options_.title, 60), kTitleSize));
  for (const std::string& line : headings()) content = std::max(content, width_of(line, kTextSize));
  for (const std::string& line : notes()) content = std::max(content, width_of(line, kTextSize));
  // The last label of the column axis is centred on the plot's edge.
  width_ = std::ceil(content + 2 * kMargin + 8);

  height_ = kMargin + kTitleSize + 6 + static_cast<double>(headings().size()) * kLineHeight;
  height_ += rows * panel_height_ + (rows - 1) * kGap + 8;
  const std::size_t lines = legend().size() + notes().size();
  height_ += static_cast<double>(std::max<std::size_t>(lines, 3)) * kLineHeight + 6;
  height_ = std::ceil(height_ + kMargin);
}

std::vector<std::string> MaskDrawing::headings() const {
  const MaskFingerprint& built = mask_.fingerprint();
  std::string sizes = fmt::format("q_len {}, kv_len {}, tiles of {} x {}", built.shape.q_len,
                                  built.shape.kv_len, mask_.block()[0], mask_.block()[1]);
  if (mask_.batch() > 1) sizes += fmt::format(", batch {}", mask_.batch());
  if (mask_.heads() > 1) sizes += fmt::format(", {} heads", mask_.heads());
  const TileCounts tiles = mask_.counts();
  return {sizes,
          fmt::format("{} of the tiles are visited: {} full, {} partial, {} empty",
                      percent(mask_.density()), tiles.full, tiles.partial, mask_.empty_tiles())};
}

std::vector<MaskDrawing::Entry> MaskDrawing::legend() const {
  if (shows_elements()) {
    return {{kFull, "kept, in a full tile: mask_mod is not asked"},
            {kPartial, "kept, in a partial tile"},
            {kPartialDropped, "dropped, in a partial tile"},
            {kEmpty, "dropped, in an empty tile: skipped"}};
  }
  return {{kFull, std::string(legend_of(CellKind::full))},
          {kPartial, std::string(legend_of(CellKind::partial))},
          {kEmpty, std::string(legend_of(CellKind::empty))}};
}

std::vector<std::string> MaskDrawing::notes() const {
  std::vector<std::string> lines;
  const Cells& cells = panels_.front().cells;
  const bool elements = shows_elements();
  const std::int64_t down = elements ? cells.tokens_down : cells.tokens_down / mask_.block()[0];
  const std::int64_t across =
      elements ? cells.tokens_across : cells.tokens_across / mask_.block()[1];
  if (down * across > 1) {
    lines.push_back(
        elements
            ? fmt::format("A cell is {} x {} elements, in the mix of their colours.", down, across)
            : fmt::format(
                  "A cell is {} x {} tiles: the colour of most, paler the fewer are visited.", down,
                  across));
  }
  const Cells& scores = panels_.front().scores.layout;
  if (options_.scores && scores.tokens_down * scores.tokens_across > 1) {
    lines.push_back(fmt::format("A cell of score_mod is the mean of {} x {} elements.",
                                scores.tokens_down, scores.tokens_across));
  }
  const std::int64_t drawn = static_cast<std::int64_t>(panels_.size());
  if (drawn < lists_) {
    lines.push_back(fmt::format("{} more are not drawn; choose with --b and --h.", lists_ - drawn));
  }
  return lines;
}

void MaskDrawing::draw(Canvas& canvas) const {
  draw_heading(canvas);
  const double top =
      kMargin + kTitleSize + 6 + static_cast<double>(headings().size()) * kLineHeight;
  double bottom = top;
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(i) / columns_;
    const std::int64_t column = static_cast<std::int64_t>(i) % columns_;
    const double y = top + static_cast<double>(row) * (panel_height_ + kGap);
    draw_panel(canvas, panels_[i], kMargin + static_cast<double>(column) * (panel_width_ + kGap),
               y);
    bottom = y + panel_height_;
  }
  draw_legend(canvas, bottom + 8);
}

void MaskDrawing::draw_heading(Canvas& canvas) const {
  double y = kMargin + kTitleSize - 4;
  canvas.text(kMargin, y, shortened(options_.title, 60),
              {.size = kTitleSize, .anchor = Anchor::start, .color = kInk});
  y += 4;
  for (const std::string& line : headings()) {
    y += kLineHeight;
    canvas.text(kMargin, y, line, {.size = kTextSize, .anchor = Anchor::start, .color = kFaintInk});
  }
}

void MaskDrawing::draw_panel(Canvas& canvas, const Panel& panel, double x, double y) const {
  const double plot_x = x + row_label_width_;
  const double score_x = plot_x + plot_width_ + kGap;
  if (panels_.size() > 1 || options_.scores) {
    const TextStyle style{.size = kTextSize, .anchor = Anchor::start, .color = kInk};
    canvas.text(plot_x, y + kCaptionHeight - 2, panel.caption.empty() ? "mask" : panel.caption,
                style);
    if (options_.scores) canvas.text(score_x, y + kCaptionHeight - 2, "score_mod", style);
    y += kCaptionHeight;
  }
  const double plot_y = y + kAxisHeight;
  draw_plot(canvas, panel.cells, {plot_x, plot_y, plot_width_, plot_height_}, true);
  if (options_.scores) {
    draw_plot(canvas, panel.scores.layout, {score_x, plot_y, plot_width_, plot_height_}, false);
  }
}

void MaskDrawing::draw_plot(Canvas& canvas, const Cells& cells, const Rect& area,
                            bool with_rows) const {
  canvas.cells(cells, area);
  if (with_rows) draw_tile_borders(canvas, cells, area);
  const double right = area.x + area.width, bottom = area.y + area.height;
  canvas.line(area.x, area.y, right, area.y, kLine, 1);
  canvas.line(area.x, bottom, right, bottom, kLine, 1);
  canvas.line(area.x, area.y, area.x, bottom, kLine, 1);
  canvas.line(right, area.y, right, bottom, kLine, 1);

  const TextStyle name{.size = kLabelSize, .anchor = Anchor::start, .color = kFaintInk};
  canvas.text(area.x, area.y - kTickLength - 15, "kv_idx →", name);
  for (const Tick& tick : column_ticks_) {
    const double x =
        area.x + area.width * static_cast<double>(tick.position) / static_cast<double>(cells.width);
    canvas.line(x, area.y - kTickLength, x, area.y, kLine, 1);
    canvas.text(x, area.y - kTickLength - 3, tick.label,
                {.size = kLabelSize, .anchor = Anchor::middle, .color = kInk});
  }
  if (!with_rows) return;
  canvas.text(area.x - kTickLength - 4, area.y - kTickLength - 15, "q_idx ↓",
              {.size = kLabelSize, .anchor = Anchor::end, .color = kFaintInk});
  for (const Tick& tick : row_ticks_) {
    const double y = area.y + area.height * static_cast<double>(tick.position) /
                                  static_cast<double>(cells.height);
    canvas.line(area.x - kTickLength, y, area.x, y, kLine, 1);
    canvas.text(area.x - kTickLength - 3, y + 0.36 * kLabelSize, tick.label,
                {.size = kLabelSize, .anchor = Anchor::end, .color = kInk});
  }
}

// White between tiles; where the cells are elements, dark, as there white would hide some.
void MaskDrawing::draw_tile_borders(Canvas& canvas, const Cells& cells, const Rect& area) const {
  const bool elements = shows_elements();
  if (!elements &&
      (cells.tokens_down > mask_.block()[0] || cells.tokens_across > mask_.block()[1])) {
    return;
  }
  const Color color = elements ? kLine : kPaper;
  const auto draw_all = [&](std::int64_t length, std::int64_t block, double extent, auto line) {
    const double tile = extent * static_cast<double>(block) / static_cast<double>(length);
    if (tile < kLeastTile) return;
    for (std::int64_t token = block; token < length; token += block) {
      line(extent * static_cast<double>(token) / static_cast<double>(length));
    }
  };
  draw_all(cells.height, mask_.block()[0], area.height, [&](double y) {
    canvas.line(area.x, area.y + y, area.x + area.width, area.y + y, color, 0.5);
  });
  draw_all(cells.width, mask_.block()[1], area.width, [&](double x) {
    canvas.line(area.x + x, area.y, area.x + x, area.y + area.height, color, 0.5);
  });
}

void MaskDrawing::draw_legend(Canvas& canvas, double y) const {
  const double x = kMargin + row_label_width_;
  const double start = y;
  for (const Entry& entry : legend()) {
    y += kLineHeight;
    canvas.fill({x, y - kSwatch + 2, kSwatch, kSwatch}, entry.color);
    canvas.text(x + kSwatch + 6, y, entry.words,
                {.size = kTextSize, .anchor = Anchor::start, .color = kInk});
  }
  for (const std::string& line : notes()) {
    y += kLineHeight;
    canvas.text(x, y, line, {.size = kTextSize, .anchor = Anchor::start, .color = kFaintInk});
  }
  if (options_.scores) draw_score_scale(canvas, x + plot_width_ + kGap, start);
}

void MaskDrawing::draw_score_scale(Canvas& canvas, double x, double y) const {
  y += kLineHeight;
  const TextStyle style{.size = kTextSize, .anchor = Anchor::start, .color = kInk};
  if (!has_scores_) {
    canvas.text(x, y, "no element is kept", style);
    return;
  }
  canvas.text(x, y, fmt::format("score_mod of {:g}; grey: dropped", options_.score), style);
  constexpr int kSteps = 60;
  const double step = kScaleWidth / kSteps;
  y += 6;
  for (int i = 0; i < kSteps; ++i) {
    // Each reaches to the end, so that no paper shines through between two.
    canvas.fill({x + i * step, y, kScaleWidth - i * step, kSwatch}, heat((i + 0.5) / kSteps));
  }
  y += kSwatch + kLineHeight - 3;
  const TextStyle ends{.size = kLabelSize, .anchor = Anchor::start, .color = kInk};
  canvas.text(x, y, fmt::format("{:.4g}", least_score_), ends);
  canvas.text(x + kScaleWidth, y, fmt::format("{:.4g}", greatest_score_),
              {.size = kLabelSize, .anchor = Anchor::end, .color = kInk});
}

}  // namespace tilewright::picture
