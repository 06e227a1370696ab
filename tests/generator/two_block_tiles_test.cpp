// The union of two rows' lists that the Hopper kernel visits, merged on the host.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "tests/generator/device_on_host.hpp"
#include "tests/generator/tile_lists.hpp"
#include "tests/support/catch.hpp"

namespace {

using std::max;
using std::min;

// The lanes of a warp, one after the other.
unsigned current_lane = 0;
inline void __syncwarp() {}

constexpr int kQTile = 192;
struct ForwardArguments {};
constexpr int kBlockQ = 128;
constexpr int kKvTile = 128;
constexpr int kThreads = 512;

template <int>
unsigned thread_number() {
  return 32 + current_lane;
}

// Blocks of one tile; two_block_tiles_long_blocks_test.cpp has others.
#ifndef BLOCK_KV
#define BLOCK_KV 128
#define BLOCK_NAME ""
#endif
constexpr int kBlockKv = BLOCK_KV;

#include "cuda/hopper/two_block_tiles.hpp"

enum class State { absent = 0, full = 1, partial = 3 };  // as TileState

struct Visit {
  int first;
  State of[2];
  bool operator==(const Visit&) const = default;
};

// Rows 1 and 2 of a mask, after row 0. Each holds a part of the blocks, of both kinds.
struct RandomRows {
  tile_lists::Lists partial, full;
  std::map<int, Visit, std::greater<>> union_of_both;  // by block, the last one first

  RandomRows(std::mt19937& random, int round, int kv_blocks) {
    for (int row = 0; row < 2; ++row) {
      for (int block = 0; block < kv_blocks; ++block) {
        // Rows without anything, rows that have all, and holes.
        const auto kind = round % 7 == row ? 0U : round % 5 == 0 ? 2U : random() % 3U;
        if (kind == 0) continue;
        (kind == 1 ? partial : full).blocks.push_back(block);
        const auto [at, is_new] = union_of_both.try_emplace(block, Visit{});
        at->second.of[row] = kind == 1 ? State::partial : State::full;
      }
      partial.end_row();
      full.end_row();
    }
  }
};

template <typename Tiles>
void check_union(bool has_second) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const int kv_blocks = 1 + static_cast<int>(random() % 12U);
    const int kv_len =
        (kv_blocks - 1) * kBlockKv + 1 + static_cast<int>(random() % unsigned{kBlockKv});
    const RandomRows rows(random, round, kv_blocks);
    std::vector<Visit> expected;
    for (auto [block, visit] : rows.union_of_both) {
      if (!has_second) visit.of[1] = State::absent;
      if (visit.of[0] == State::absent && visit.of[1] == State::absent) continue;
      const int end = std::min((block + 1) * kBlockKv, kv_len);
      for (int first = (end - 1) / kKvTile * kKvTile; first >= block * kBlockKv; first -= kKvTile) {
        expected.push_back({first, {visit.of[0], visit.of[1]}});
      }
    }

    // Row 1 is that of the head's only block, or of its first of two.
    const BlockMaskArguments mask{rows.partial.offsets.data(), rows.partial.blocks.data(),
                                  rows.full.offsets.data(), rows.full.blocks.data(),
                                  has_second ? 2 : 1};
    typename Tiles::Lists lists = {};
    for (current_lane = 32; current_lane-- > 0;)
      Tiles::find(mask, QTile{1, 0}, tw_kernel::Part{}, kv_len, lists);
    INFO("round " << round << ", kv_len " << kv_len << ", " << expected.size() << " tiles");
    REQUIRE((lists.kv_tiles == 0) == expected.empty());
    REQUIRE(lists.kv_tiles <= static_cast<int>(expected.size()));
    if (expected.empty()) continue;

    Tiles tiles(lists, kv_len);
    std::vector<Visit> seen;
    bool is_last = false;
    while (!is_last) {
      const auto tile = tiles.next();
      REQUIRE(tile.exists());
      seen.push_back({tile.first(), {State(tile.state(0)), State(tile.state(1))}});
      REQUIRE(seen.size() <= expected.size());
      is_last = Tiles::is_last(tile, static_cast<int>(seen.size()) - 1, lists.kv_tiles);
      REQUIRE(is_last == (seen.size() == expected.size()));
      for (int row = 0; row < 2; ++row) {
        REQUIRE(State(tile.state_in_next(row)) ==
                (is_last ? State::absent : expected[seen.size()].of[row]));
      }
    }
    REQUIRE(seen == expected);
  }
}

}  // namespace

TEST_CASE(
    "Hopper merged tiles: the union of two rows, each tile with what both have of it and of the "
    "next" BLOCK_NAME) {
  for (const bool has_second : {true, false}) check_union<tw_kernel::TwoBlockTiles>(has_second);
}

TEST_CASE("Hopper merged tiles: the last tiles that a call can have" BLOCK_NAME) {
  using Tile = tw_kernel::TwoBlockTile;
  const int first = (2147483647 - 1024) / 128 * 128;
  const Tile tile(first, Tile::states(1, tw_kernel::TileState::partial));
  CHECK(tile.exists());
  CHECK(tile.first() == first);
  CHECK(State(tile.state(0)) == State::absent);
  CHECK(State(tile.state(1)) == State::partial);
  CHECK_FALSE(Tile::none().exists());
  CHECK(Tile::sentinel(first).exists());
  CHECK(Tile::sentinel(first).is_last());
}
