// The lists of tiles of the Hopper kernel, run on the host.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/generator/device_on_host.hpp"
#include "tests/generator/tile_lists.hpp"
#include "tests/support/catch.hpp"

namespace {

using std::min;

// hopper_work_long_blocks_test.cpp has another.
#ifndef BLOCK_KV
#define BLOCK_KV 64
#define BLOCK_NAME ""
#endif
constexpr int kBlockKv = BLOCK_KV;
constexpr int kKvTile = 64;
constexpr bool kHasMaskMod = true;
struct ForwardArguments {};

#include "cuda/hopper/all_tiles.hpp"
#include "cuda/hopper/listed_tiles.hpp"

using tile_lists::Tile;

template <typename Tiles>
std::vector<Tile> visited(const typename Tiles::Lists& lists, int kv_len) {
  Tiles tiles(lists, kv_len);
  std::vector<Tile> seen;
  for (int i = lists.kv_tiles; i > 0; --i) {
    const auto tile = tiles.next();
    seen.push_back({tile.first(), tile.partial()});
  }
  return seen;
}

// How many leading tiles need care: partial ones, and a full one that reaches past kv_len.
int masked_tiles(const std::vector<Tile>& tiles, int kv_len) {
  int masked = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (tiles[i].partial || tiles[i].first + kKvTile > kv_len) masked = static_cast<int>(i) + 1;
  }
  return masked;
}

template <typename Tiles>
void check_lists() {
  std::mt19937 random(1);
  const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  for (int round = 0; round < 300; ++round) {
    const int kv_blocks = 1 + below(12);
    const int kv_len = (kv_blocks - 1) * kBlockKv + 1 + below(kBlockKv);
    const auto [partial, full] = tile_lists::random_row(random, round, kv_blocks);
    std::vector<Tile> expected;  // the last block and the last tile first, partial ones before full
    append_tiles(full, kBlockKv, kKvTile, kv_len, false, expected);
    append_tiles(partial, kBlockKv, kKvTile, kv_len, true, expected);
    std::reverse(expected.begin(), expected.end());

    const BlockMaskArguments mask{partial.offsets.data(), partial.blocks.data(),
                                  full.offsets.data(), full.blocks.data()};
    const typename Tiles::Lists lists(mask, QTile{1}, tw_kernel::Part{}, kv_len);
    INFO("round " << round << ", kv_len " << kv_len << ", " << expected.size() << " tiles");
    REQUIRE(lists.kv_tiles == static_cast<int>(expected.size()));
    REQUIRE(lists.masked_tiles == masked_tiles(expected, kv_len));
    REQUIRE(visited<Tiles>(lists, kv_len) == expected);
  }
}

}  // namespace

TEST_CASE("Hopper lists of tiles: each tile once, those that need care first" BLOCK_NAME) {
  check_lists<tw_kernel::ListedTiles>();
}

TEST_CASE(
    "Hopper lists of tiles: without lists, all of them from the last to the first" BLOCK_NAME) {
  for (const int kv_len : {1, 63, 64, 65, 640, 1000}) {
    using Tiles = tw_kernel::AllTiles;
    const Tiles::Lists lists(BlockMaskArguments{}, QTile{0}, tw_kernel::Part{}, kv_len);
    std::vector<Tile> expected;
    for (int first = (kv_len - 1) / kKvTile * kKvTile; first >= 0; first -= kKvTile) {
      expected.push_back({first, true});
    }
    CHECK(visited<Tiles>(lists, kv_len) == expected);
    CHECK(lists.masked_tiles == lists.kv_tiles);
  }
}
