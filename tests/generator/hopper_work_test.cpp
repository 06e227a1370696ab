// The schedule and the lists of tiles of the Hopper kernel, run on the host.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

#define __forceinline__ inline

namespace {

struct {
  unsigned x;
} blockIdx, gridDim;

template <typename T>
T __ldg(const T* address) {
  return *address;
}
using std::min;

struct ForwardArguments {
  int q_tiles;
};
struct SnippetArguments {
  int batch;
  int num_q_heads;
};
struct BlockMaskArguments {
  const long long* row_offsets;
  const int* indices;
  const long long* full_row_offsets;
  const int* full_indices;
};
struct Place {
  int mask_row;
};

constexpr int kKvTile = 64;
constexpr bool kHasMaskMod = true;

// Blocks of one tile, and of three.
namespace blocks_of_64 {
constexpr int kBlockKv = 64;
#include "templates/cuda/forward/kv_tile.hpp"
#include "templates/cuda/hopper/work.hpp"
}  // namespace blocks_of_64
namespace blocks_of_192 {
constexpr int kBlockKv = 192;
#include "templates/cuda/forward/kv_tile.hpp"
#include "templates/cuda/hopper/work.hpp"
}  // namespace blocks_of_192

struct Tile {
  int first;
  bool partial;
  bool operator==(const Tile&) const = default;
};

// The blocks of one row, with those of another row before them.
struct Lists {
  std::vector<long long> offsets = {0, 2};
  std::vector<int> blocks = {5, 6};
  void end_row() { offsets.push_back(static_cast<long long>(blocks.size())); }
};

// What is visited of a list: the last block and the last tile first.
void append_tiles(const Lists& lists, int block_kv, int kv_len, bool partial,
                  std::vector<Tile>& tiles) {
  for (std::size_t i = lists.blocks.size(); i-- > 2;) {
    const int begin = lists.blocks[i] * block_kv;
    const int end = std::min(begin + block_kv, kv_len);
    for (int first = begin + (end - begin - 1) / kKvTile * kKvTile; first >= begin;
         first -= kKvTile) {
      tiles.push_back({first, partial});
    }
  }
}

template <typename Tiles>
std::vector<Tile> visited(Tiles tiles) {
  std::vector<Tile> seen;
  for (int i = tiles.count(); i > 0; --i) {
    const auto tile = tiles.next();
    seen.push_back({tile.first(), tile.partial()});
  }
  return seen;
}

// How many leading tiles need care: partial ones, and a full one that reaches behind kv_len.
int careful_tiles(const std::vector<Tile>& tiles, int kv_len) {
  int careful = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (tiles[i].partial || tiles[i].first + kKvTile > kv_len) careful = static_cast<int>(i) + 1;
  }
  return careful;
}

template <typename Tiles>
void check_lists(int block_kv) {
  std::mt19937 random(1);
  const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  for (int round = 0; round < 300; ++round) {
    const int kv_blocks = 1 + below(12);
    const int kv_len = (kv_blocks - 1) * block_kv + 1 + below(block_kv);
    Lists partial, full;
    for (int block = 0; block < kv_blocks; ++block) {
      const int kind = round % 3 == 0 ? below(3) : round % 3;
      if (kind == 1) partial.blocks.push_back(block);
      if (kind == 2) full.blocks.push_back(block);
    }
    partial.end_row();
    full.end_row();
    std::vector<Tile> expected;
    append_tiles(partial, block_kv, kv_len, true, expected);
    append_tiles(full, block_kv, kv_len, false, expected);

    const BlockMaskArguments mask{partial.offsets.data(), partial.blocks.data(),
                                  full.offsets.data(), full.blocks.data()};
    const Tiles tiles(mask, Place{1}, kv_len);
    INFO("round " << round << ", kv_len " << kv_len << ", " << expected.size() << " tiles");
    REQUIRE(tiles.count() == static_cast<int>(expected.size()));
    REQUIRE(tiles.careful() == careful_tiles(expected, kv_len));
    REQUIRE(visited(tiles) == expected);
  }
}

}  // namespace

TEST_CASE("Hopper lists of tiles: each tile once, those that need care first") {
  check_lists<blocks_of_64::tw_kernel::ListedTiles>(64);
  check_lists<blocks_of_192::tw_kernel::ListedTiles>(192);
}

TEST_CASE("Hopper lists of tiles: without lists, all of them from the last to the first") {
  for (const int kv_len : {1, 63, 64, 65, 640, 1000}) {
    const blocks_of_64::tw_kernel::AllTiles tiles(BlockMaskArguments{}, Place{0}, kv_len);
    std::vector<Tile> expected;
    for (int first = (kv_len - 1) / kKvTile * kKvTile; first >= 0; first -= kKvTile) {
      expected.push_back({first, true});
    }
    CHECK(visited(tiles) == expected);
    CHECK(tiles.careful() == tiles.count());
  }
}

TEST_CASE("Hopper schedule: every q tile once, and no block of threads far more than another") {
  for (const int q_tiles : {1, 5, 64}) {
    const ForwardArguments arguments{q_tiles};
    const SnippetArguments call{2, 3};
    const int count = q_tiles * 6;
    for (const unsigned grid : {1u, 7u, 132u, 500u}) {
      gridDim.x = grid;
      std::vector<int> times(static_cast<std::size_t>(count), 0);
      for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
        int tiles = 0;
        for (blocks_of_64::tw_kernel::Schedule schedule(arguments, call); !schedule.done();
             schedule.advance(), ++tiles) {
          ++times[static_cast<std::size_t>(schedule.number())];
        }
        CHECK(tiles <= (count + static_cast<int>(grid) - 1) / static_cast<int>(grid));
      }
      INFO(q_tiles << " q tiles, " << grid << " blocks of threads");
      CHECK(std::count(times.begin(), times.end(), 1) == count);
    }
  }
}
