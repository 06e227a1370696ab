#include "picture/text.hpp"

#include <algorithm>

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
        "██ full  ░░ partial  blank empty\n");
}

TEST_CASE("text picture: ASCII on request") {
  const std::string text = text_picture(causal_mask(2), {.ascii = true});
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("  128 ##++\n"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("## full  ++ partial"));
  CHECK(text.find("█") == std::string::npos);
}

TEST_CASE("text picture: a large mask is drawn in cells of several tiles") {
  const std::string text = text_picture(causal_mask(100), {.max_rows = 10, .max_columns = 5});
  CHECK(lines_of(text) == 2 + 1 + 10 + 1);
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("q     0 ░░\n"));
  // Rows 90 to 99: full up to column 79, then a cell that is full left and empty right.
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("  11520 ████████░░\n"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("a cell is 10 x 20 tiles"));
}

TEST_CASE("text picture: the first lists are drawn and the others counted") {
  const std::string text = text_picture(causal_mask(2, 3, 2), {.max_lists = 3});
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\nb 0, h 1\n"));
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\nb 1, h 0\n"));
  CHECK(text.find("b 1, h 1") == std::string::npos);
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("... and 3 more\n"));
}

TEST_CASE("text picture: no line ends in blanks") {
  const std::string text = text_picture(causal_mask(7, 2));
  CHECK(text.find(" \n") == std::string::npos);
}
