#include "picture/png.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <png.h>

#include "base/error.hpp"

namespace tilewright::picture {

PngCanvas::PngCanvas(double width, double height, int scale)
    : scale_(scale),
      width_(static_cast<std::int64_t>(std::ceil(width * scale))),
      height_(static_cast<std::int64_t>(std::ceil(height * scale))),
      pixels_(static_cast<std::size_t>(width_ * height_ * 3), 255) {}

std::int64_t PngCanvas::edge(double position) const {
  return std::lround(position * scale_);
}

void PngCanvas::fill_box(Box box, Color color) {
  box.left = std::max<std::int64_t>(box.left, 0);
  box.top = std::max<std::int64_t>(box.top, 0);
  box.right = std::min(box.right, width_);
  box.bottom = std::min(box.bottom, height_);
  for (std::int64_t y = box.top; y < box.bottom; ++y) {
    for (std::int64_t x = box.left; x < box.right; ++x) {
      std::uint8_t* pixel = &pixels_[static_cast<std::size_t>((y * width_ + x) * 3)];
      pixel[0] = color.red;
      pixel[1] = color.green;
      pixel[2] = color.blue;
    }
  }
}

void PngCanvas::blend(std::int64_t x, std::int64_t y, Color color, double share) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  std::uint8_t* pixel = &pixels_[static_cast<std::size_t>((y * width_ + x) * 3)];
  const Color mixed = mix({pixel[0], pixel[1], pixel[2]}, color, share);
  pixel[0] = mixed.red;
  pixel[1] = mixed.green;
  pixel[2] = mixed.blue;
}

void PngCanvas::fill(const Rect& rect, Color color) {
  fill_box({edge(rect.x), edge(rect.y), edge(rect.x + rect.width), edge(rect.y + rect.height)},
           color);
}

// Whole pixels, so that thin lines are sharp and equally thin.
void PngCanvas::line(double x0, double y0, double x1, double y1, Color color, double width) {
  const std::int64_t thickness = std::max<std::int64_t>(1, edge(width));
  const auto first = [&](double position) {
    return std::lround(position * scale_ - static_cast<double>(thickness) / 2);
  };
  if (x0 == x1) {
    const std::int64_t left = first(x0);
    fill_box({left, edge(std::min(y0, y1)), left + thickness, edge(std::max(y0, y1))}, color);
  } else {
    const std::int64_t top = first(y0);
    fill_box({edge(std::min(x0, x1)), top, edge(std::max(x0, x1)), top + thickness}, color);
  }
}

void PngCanvas::text(double x, double y, std::string_view words, const TextStyle& style) {
  const Font::Line line = font_.draw(words, style.size * scale_);
  double left = x * scale_;
  if (style.anchor == Anchor::middle) left -= static_cast<double>(line.advance) / 2;
  if (style.anchor == Anchor::end) left -= static_cast<double>(line.advance);
  const std::int64_t start = std::lround(left), baseline = edge(y);
  for (const Font::Pixel& pixel : line.pixels) {
    blend(start + pixel.x, baseline + pixel.y, style.color, pixel.coverage / 255.0);
  }
}

void PngCanvas::cells(const Cells& cells, const Rect& area) {
  const auto x_of = [&](std::int64_t token) {
    const auto share =
        static_cast<double>(std::min(token, cells.width)) / static_cast<double>(cells.width);
    return edge(area.x + area.width * share);
  };
  const auto y_of = [&](std::int64_t token) {
    const auto share =
        static_cast<double>(std::min(token, cells.height)) / static_cast<double>(cells.height);
    return edge(area.y + area.height * share);
  };
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    const std::int64_t top = y_of(row * cells.tokens_down);
    const std::int64_t bottom = y_of((row + 1) * cells.tokens_down);
    for (std::int64_t column = 0; column < cells.columns; ++column) {
      fill_box({x_of(column * cells.tokens_across), top, x_of((column + 1) * cells.tokens_across),
                bottom},
               cells.at(row, column));
    }
  }
}

std::vector<std::byte> PngCanvas::finish() const {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width_);
  image.height = static_cast<png_uint_32>(height_);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> file(bytes);
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels_.data(), 0, nullptr) == 0) {
    const std::string why = image.message;
    png_image_free(&image);
    throw Error(ErrorCode::memory, fmt::format("the picture cannot be made: {}", why),
                "name a .svg file in place of a .png file");
  }
  file.resize(bytes);
  return file;
}

}  // namespace tilewright::picture
