#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tilewright::picture {

/// Letters as pixels: DejaVu Sans, which is part of this library, drawn by FreeType.
class Font {
 public:
  /// A pixel that a letter covers in part.
  struct Pixel {
    std::int64_t x;  ///< from the start of the line
    std::int64_t y;  ///< from the line that letters stand on, downwards
    std::uint8_t coverage;
  };
  struct Line {
    std::vector<Pixel> pixels;
    std::int64_t advance = 0;  ///< its width in pixels
  };

  /// @throws Error with code memory or internal
  Font();
  ~Font();
  Font(const Font&) = delete;
  Font& operator=(const Font&) = delete;

  /// @param words UTF-8; letters that the font lacks and malformed bytes are drawn as boxes
  /// @param size of the letters, in pixels
  Line draw(std::string_view words, double size);

 private:
  struct Face;
  std::unique_ptr<Face> face_;
};

}  // namespace tilewright::picture
