#include "picture/mask_cells.hpp"

#include <cmath>
#include <limits>

#include "tests/picture/masks.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::picture;
using Tile = BlockMask::Tile;

namespace {

// Elements of causal attention whose score is 10 q + kv.
void read_causal(ListIndex, std::int64_t q_row, ElementRow& row) {
  constexpr std::int64_t kLength = 64;
  row.scores.assign(kLength, 0);
  row.keep.assign(kLength, 0);
  for (std::int64_t kv = 0; kv < kLength; ++kv) {
    row.scores[static_cast<std::size_t>(kv)] = static_cast<float>(10 * q_row + kv);
    row.keep[static_cast<std::size_t>(kv)] = q_row >= kv;
  }
}

}  // namespace

TEST_CASE("mask cells: a tile is a cell where there is room") {
  const Cells cells = tile_cells(test::causal_mask(60, 16), {}, 4);
  CHECK(cells.rows == 4);
  CHECK(cells.columns == 4);
  CHECK(cells.tokens_down == 16);
  CHECK(cells.height == 60);
  CHECK(cells.at(2, 1) == kFull);
  CHECK(cells.at(3, 3) == kPartial);
  CHECK(cells.at(0, 3) == kEmpty);
}

TEST_CASE("mask cells: tiles that share a cell have the colour of most and pale with the others") {
  const Cells cells = tile_cells(test::causal_mask(8 * 16, 16), {}, 2);
  CHECK(cells.tokens_across == 64);
  CHECK(cells.at(1, 0) == kFull);
  CHECK(cells.at(0, 1) == kEmpty);
  // 6 full and 4 partial of 16.
  CHECK(cells.at(0, 0) == mix(kEmpty, kFull, 10.0 / 16));
}

TEST_CASE("mask cells: a single visited tile of thousands is seen") {
  const BlockMask mask = test::make_mask({.q_len = 64 * 16, .kv_len = 64 * 16}, {16, 16},
                                         [](std::int64_t, std::int64_t q, std::int64_t kv) {
                                           return q == 0 && kv == 0 ? Tile::partial : Tile::empty;
                                         });
  CHECK(tile_cells(mask, {}, 1).at(0, 0) == mix(kEmpty, kPartial, 0.3));
}

TEST_CASE("mask cells: ragged cells are judged by the tiles that they have") {
  const Cells cells = tile_cells(
      test::make_mask({.q_len = 5 * 16, .kv_len = 3 * 32}, {16, 32},
                      [](std::int64_t, std::int64_t, std::int64_t) { return Tile::full; }),
      {}, 2);
  CHECK(cells.rows == 2);
  CHECK(cells.columns == 2);
  for (const Color& color : cells.colors) CHECK(color == kFull);
}

TEST_CASE("mask cells: each batch and head has its own list, a shared one serves all") {
  const BlockMask mask =
      test::make_mask({.batch = 2, .num_q_heads = 3, .num_kv_heads = 3, .q_len = 16, .kv_len = 32},
                      {16, 16}, [](std::int64_t list, std::int64_t, std::int64_t kv) {
                        return list == 4 && kv == 1 ? Tile::full : Tile::empty;
                      });
  CHECK(tile_cells(mask, {1, 1}, 8).at(0, 1) == kFull);
  CHECK(tile_cells(mask, {1, 2}, 8).at(0, 1) == kEmpty);
  CHECK(count_tiles(mask, {1, 1}).full == 1);
  CHECK(count_tiles(mask, {0, 0}).full == 0);
  CHECK(count_tiles(test::causal_mask(32, 16), {7, 5}).partial == 2);
}

TEST_CASE("mask cells: elements have the colours of their tiles") {
  const BlockMask mask = test::causal_mask(64, 32);
  const Cells cells = element_cells(mask, {}, read_causal, 64);
  CHECK(cells.rows == 64);
  CHECK(cells.at(40, 3) == kFull);
  CHECK(cells.at(5, 5) == kPartial);
  CHECK(cells.at(5, 6) == kPartialDropped);
  CHECK(cells.at(5, 40) == kEmpty);
  // Two by two on the diagonal: three kept, one dropped.
  const Color mixed = element_cells(mask, {}, read_causal, 32).at(0, 0);
  CHECK(int{mixed.red} == std::lround((3 * kPartial.red + kPartialDropped.red) / 4.0));
}

TEST_CASE("mask cells: scores are the mean of what is kept, and nothing elsewhere") {
  const BlockMask mask = test::causal_mask(64, 32);
  const ScoreCells one = score_cells(mask, {}, read_causal, 64);
  CHECK(one.values[5 * 64 + 3] == 53.0f);
  CHECK(std::isnan(one.values[5 * 64 + 6]));
  const ScoreCells two = score_cells(mask, {}, read_causal, 32);
  CHECK(two.values[0] == (0 + 10 + 11) / 3.0f);
  const ReadElements infinite = [](ListIndex, std::int64_t, ElementRow& row) {
    row.scores.assign(64, -std::numeric_limits<float>::infinity());
    row.keep.assign(64, 1);
  };
  CHECK(std::isnan(score_cells(mask, {}, infinite, 64).values[0]));
}
