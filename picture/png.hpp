#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "canvas.hpp"
#include "font.hpp"

namespace tilewright::picture {

/// A drawing as pixels.
class PngCanvas final : public Canvas {
 public:
  /// @param scale pixels for each unit: 2 is sharp on today's screens
  PngCanvas(double width, double height, int scale = 2);

  void fill(const Rect& rect, Color color) override;
  void line(double x0, double y0, double x1, double y1, Color color, double width) override;
  void text(double x, double y, std::string_view words, const TextStyle& style) override;
  void cells(const Cells& cells, const Rect& area) override;

  /// The file.
  /// @throws Error with code memory
  std::vector<std::byte> finish() const;

 private:
  // Pixel edges: x from .. to (exclusive) and y likewise; what lies outside is left out.
  struct Box {
    std::int64_t left, top, right, bottom;
  };
  void fill_box(Box box, Color color);
  void blend(std::int64_t x, std::int64_t y, Color color, double share);
  std::int64_t edge(double position) const;

  int scale_;
  std::int64_t width_;
  std::int64_t height_;
  std::vector<std::uint8_t> pixels_;  // [height, width, 3]
  Font font_;
};

}  // namespace tilewright::picture
