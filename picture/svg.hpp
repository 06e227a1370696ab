#pragma once

#include <string>

#include "canvas.hpp"

namespace tilewright::picture {

/// A drawing as SVG 1.1: sharp at any size, its words can be searched, and the same drawing gives
/// the same bytes.
class SvgCanvas final : public Canvas {
 public:
  /// @param title for screen readers and a browser's tab
  SvgCanvas(double width, double height, std::string_view title);

  void fill(const Rect& rect, Color color) override;
  void line(double x0, double y0, double x1, double y1, Color color, double width) override;
  void text(double x, double y, std::string_view words, const TextStyle& style) override;
  void cells(const Cells& cells, const Rect& area) override;

  /// The document. Nothing may be drawn after it.
  std::string finish();

 private:
  std::string document_;
};

}  // namespace tilewright::picture
