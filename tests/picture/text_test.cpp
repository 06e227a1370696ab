#include "picture/text.hpp"

#include <algorithm>

#include "picture/mask_cells.hpp"
#include "tests/picture/masks.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using tilewright::picture::text_picture;

namespace {

// Causal lists of `blocks` x `blocks` tiles of 128, for every list the same.
BlockMask causal_mask(std::int64_t blocks, std::int64_t batch = 1, std::int64_t heads = 1) {
  TileLists lists{.row_offsets = {0}, .indices = {}, .full_row_offsets = {0}, .full_indices = {}};
  for (std::int64_t list = 0; list < batch * heads; ++list) {
    for (std::int64_t row = 0; row < blocks; ++row) {
      for (std::int64_t i = 0; i < row; ++i) {
        lists.full_indices.push_back(static_cast<std::int32_t>(i));
      }
      lists.indices.push_back(static_cast<std::int32_t>(row));
      lists.row_offsets.push_back(static_cast<std::int64_t>(lists.indices.size()));
      lists.full_row_offsets.push_back(static_cast<std::int64_t>(lists.full_indices.size()));
    }
  }
  MaskFingerprint fingerprint;
  fingerprint.source = {.mask_mod = "q_idx >= kv_idx", .block = {128, 128}, .scalars = {}};
  fingerprint.shape = {.batch = batch,
                       .num_q_heads = heads,
                       .num_kv_heads = 1,
                       .q_len = blocks * 128,
                       .kv_len = blocks * 128};
  return BlockMask(fingerprint, lists, "exact", blocks * blocks);
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("text picture: a causal mask is a staircase with axes, counts and a legend") {
  CHECK(text_picture(causal_mask(4)) ==
        "block mask: batch 1, heads 1, q_len 512, kv_len 512, tiles of 128 x 128\n"
        "6 full, 4 partial, 6 empty; 62.5 % of the tiles are visited\n"
        "   kv 0    512\n"
        "q   0 ░░\n"
        "  128 ██░░\n"
        "  256 ████░░\n"
        "  384 ██████░░\n"
        "██ full: every element is kept\n"
        "░░ partial: mask_mod decides\n"
        "blank empty: skipped\n");
}

TEST_CASE("text picture: ASCII on request") {
  const std::string text = text_picture(causal_mask(2), {.ascii = true});
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("  128 ##++\n"));
  CHECK_THAT(text,
             Catch::Matchers::ContainsSubstring("## full: every element is kept\n++ partial"));
  CHECK(text.find("█") == std::string::npos);
}

TEST_CASE("text picture: a large mask is drawn in cells of several tiles") {
  const std::string text = text_picture(causal_mask(100), {.max_rows = 10, .max_columns = 5});
  CHECK(lines_of(text) == 2 + 1 + 10 + 3 + 1);
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("q     0 ██\n"));
  // Rows 90 to 99: full up to column 79, then a cell with 145 full, 10 partial and 45 empty tiles.
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("  11520 ██████████\n"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("A cell is 10 x 20 tiles"));
}

TEST_CASE("text picture: the first lists are drawn and the others counted") {
  const std::string text = text_picture(causal_mask(2, 3, 2), {.max_lists = 3});
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\nb 0, h 1\n"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\nb 1, h 0\n"));
  CHECK(text.find("b 1, h 1") == std::string::npos);
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("... and 3 more\n"));
}

TEST_CASE("text picture: a cell of many tiles shows what the drawn pictures show") {
  // A band of 32 full tiles between partial ones, as a sliding window has: no cell is full alone.
  const BlockMask mask = test::make_mask({.q_len = 1024 * 16, .kv_len = 1024 * 16}, {16, 16},
                                         [](std::int64_t, std::int64_t q, std::int64_t kv) {
                                           if (kv > q || kv < q - 33) return BlockMask::Tile::empty;
                                           return kv == q || kv == q - 33 ? BlockMask::Tile::partial
                                                                          : BlockMask::Tile::full;
                                         });
  const std::string text = text_picture(mask, {.max_rows = 16, .max_columns = 16, .ascii = true});
  const picture::Cells cells = picture::tile_cells(mask, {}, 16);
  REQUIRE(cells.rows == 16);
  std::size_t line = text.find("q ");
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    const std::string drawn = text.substr(line, text.find('\n', line) - line);
    for (std::int64_t column = 0; column < cells.columns; ++column) {
      const std::size_t at = 8 + 2 * static_cast<std::size_t>(column);
      const char symbol = at < drawn.size() ? drawn[at] : ' ';
      const bool empty = cells.at(row, column) == picture::kEmpty;
      const bool bluish = cells.at(row, column).blue > cells.at(row, column).red;
      CAPTURE(row, column, drawn);
      CHECK((symbol == ' ') == empty);
      if (!empty) CHECK((symbol == '#') == bluish);
    }
    line = text.find('\n', line) + 1;
  }
}

TEST_CASE("text picture: the axes count from the offsets") {
  const BlockMask mask = test::make_mask(
      {.q_len = 256, .kv_len = 512, .q_offset = 100'000, .kv_offset = -64}, {128, 128},
      [](std::int64_t, std::int64_t, std::int64_t) { return BlockMask::Tile::full; });
  CHECK_THAT(text_picture(mask), Catch::Matchers::ContainsSubstring("      kv -64  448\n"
                                                                    "q 100000 ████████\n"
                                                                    "  100128 ████████\n"));
}

TEST_CASE("text picture: no line ends in blanks") {
  const std::string text = text_picture(causal_mask(7, 2));
  CHECK(text.find(" \n") == std::string::npos);
}
