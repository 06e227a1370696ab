#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "color.hpp"

namespace tilewright::picture {

/// In units of a screen's pixel, y downwards.
struct Rect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// Coloured cells over an area of tokens. All cells have the same size, but the last ones end with
/// the area.
struct Cells {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t tokens_down = 0;  ///< of a cell
  std::int64_t tokens_across = 0;
  std::int64_t height = 0;  ///< of the area, in tokens
  std::int64_t width = 0;
  std::vector<Color> colors;  ///< [rows, columns]

  Color at(std::int64_t row, std::int64_t column) const {
    return colors[static_cast<std::size_t>(row * columns + column)];
  }
};

enum class Anchor : std::uint8_t { start, middle, end };

struct TextStyle {
  double size = 12;
  Anchor anchor = Anchor::start;
  Color color = kInk;
};

/// Something to draw on.
class Canvas {
 public:
  virtual ~Canvas() = default;
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  virtual void fill(const Rect& rect, Color color) = 0;
  /// A straight line, horizontal or vertical; its width lies around it.
  virtual void line(double x0, double y0, double x1, double y1, Color color, double width) = 0;
  /// @param y the line that letters stand on
  virtual void text(double x, double y, std::string_view words, const TextStyle& style) = 0;
  /// Cells that fill an area without gaps.
  virtual void cells(const Cells& cells, const Rect& area) = 0;

 protected:
  Canvas() = default;
};

/// At least the width of a text: letters are counted, not measured, so that a layout is the same
/// whatever font draws it.
double width_of(std::string_view words, double size);

}  // namespace tilewright::picture
