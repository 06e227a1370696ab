#include "picture/font.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <ft2build.h>
#include FT_FREETYPE_H

#include "base/error.hpp"

// The font's file, put into the library by cmake/EmbedFont.cmake.
extern "C" const unsigned char tilewright_font[];
extern "C" const unsigned char tilewright_font_end[];

namespace tilewright::picture {
namespace {

void require(FT_Error error, const char* step) {
  if (error == 0) return;
  const bool memory = error == FT_Err_Out_Of_Memory;
  throw Error(memory ? ErrorCode::memory : ErrorCode::internal,
              fmt::format("no letters for the picture: {} failed ({})", step, error),
              "name a .svg file in place of a .png file");
}

constexpr char32_t kReplacement = 0xFFFD;

// Takes one character off the front; a malformed byte is a replacement character.
char32_t next_character(std::string_view& words) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(words[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t character = length == 1 ? first : first & (0xFFU >> (length + 1));
  bool well_formed = (first < 0x80 || first >= 0xC2) && length <= words.size();
  for (std::size_t i = 1; well_formed && i < length; ++i) {
    well_formed = (byte(i) & 0xC0U) == 0x80;
    character = (character << 6U) | (byte(i) & 0x3FU);
  }
  words.remove_prefix(well_formed ? length : 1);
  return well_formed ? character : kReplacement;
}

}  // namespace

struct Font::Face {
  FT_Library library = nullptr;
  FT_Face face = nullptr;

  ~Face() {
    if (face) FT_Done_Face(face);
    if (library) FT_Done_FreeType(library);
  }
};

Font::Font() : face_(std::make_unique<Face>()) {
  require(FT_Init_FreeType(&face_->library), "starting FreeType");
  require(FT_New_Memory_Face(face_->library, tilewright_font,
                             static_cast<FT_Long>(tilewright_font_end - tilewright_font), 0,
                             &face_->face),
          "opening the font");
}

Font::~Font() = default;

Font::Line Font::draw(std::string_view words, double size) {
  FT_Face face = face_->face;
  require(FT_Set_Pixel_Sizes(face, 0, static_cast<FT_UInt>(std::lround(size))), "sizing the font");
  Line line;
  while (!words.empty()) {
    const char32_t character = next_character(words);
    require(FT_Load_Char(face, character, FT_LOAD_RENDER | FT_LOAD_TARGET_LIGHT),
            "drawing a letter");
    const FT_GlyphSlot glyph = face->glyph;
    for (unsigned row = 0; row < glyph->bitmap.rows; ++row) {
      const unsigned char* bytes =
          glyph->bitmap.buffer + static_cast<std::ptrdiff_t>(row) * glyph->bitmap.pitch;
      for (unsigned column = 0; column < glyph->bitmap.width; ++column) {
        if (bytes[column] == 0) continue;
        line.pixels.push_back({.x = line.advance + glyph->bitmap_left + std::int64_t{column},
                               .y = std::int64_t{row} - glyph->bitmap_top,
                               .coverage = bytes[column]});
      }
    }
    line.advance += glyph->advance.x / 64;
  }
  return line;
}

}  // namespace tilewright::picture
