// The list of tiles of a CUDA kernel, run on the host: 128 threads by turns, in any order between
// two barriers.
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "tests/generator/device_on_host.hpp"
#include "tests/generator/tile_lists.hpp"
#include "tests/support/catch.hpp"

#define __shared__ static

namespace {

struct {
  int x;
} threadIdx;

struct HeadPointers {
  QTile q_tile;
};

struct ForwardArguments {
  BlockMaskArguments mask;
};

constexpr int kThreads = 128, kKvTile = 32, kBlockKv = 128;

template <int>
int thread_number() {
  return threadIdx.x;
}

#include "cuda/portable/listed_tiles.hpp"

using tile_lists::Tile;
using tw_kernel::KvTile;
using tw_kernel::ListedTiles;

}  // namespace

TEST_CASE("CUDA lists of tiles: every thread sees each tile once, partial ones first") {
  std::mt19937 random(1);
  const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  for (int round = 0; round < 60; ++round) {
    const int kv_blocks = 1 + below(round % 4 == 0 ? 100 : 10);
    const int kv_len = (kv_blocks - 1) * kBlockKv + 1 + below(kBlockKv);
    const auto [partial, full] = tile_lists::random_row(random, round, kv_blocks);
    std::vector<Tile> expected;
    append_tiles(partial, kBlockKv, kKvTile, kv_len, true, expected);
    append_tiles(full, kBlockKv, kKvTile, kv_len, false, expected);

    const BlockMaskArguments mask{partial.offsets.data(), partial.blocks.data(),
                                  full.offsets.data(), full.blocks.data()};
    const ForwardArguments arguments{mask};
    const HeadPointers head{{1}};
    const std::size_t stages = 1 + static_cast<std::size_t>(below(8));
    std::vector<std::unique_ptr<ListedTiles>> threads(kThreads);
    std::vector<int> order(kThreads);
    for (int i = 0; i < kThreads; ++i) order[static_cast<std::size_t>(i)] = i;
    const auto up_to_barrier = [&](auto&& body) {
      std::shuffle(order.begin(), order.end(), random);
      for (const int thread : order) {
        threadIdx.x = thread;
        body(threads[static_cast<std::size_t>(thread)]);
      }
    };
    std::size_t wrong = 0;
    const auto look = [&](const ListedTiles& tiles, std::size_t now, std::size_t ahead) {
      const KvTile tile = tiles.ahead(static_cast<int>(ahead));
      const bool exists = now + ahead < expected.size();
      if (tile.exists() != exists) ++wrong;
      if (!exists || !tile.exists()) return;
      const Tile& right = expected[now + ahead];
      if (tile.first() != right.first || tile.partial() != right.partial) ++wrong;
    };

    up_to_barrier([&](auto& tiles) {
      tiles = std::make_unique<ListedTiles>(arguments, head.q_tile, head, kv_len);
    });
    up_to_barrier([&](auto& tiles) {
      for (std::size_t i = 0; i < stages; ++i) look(*tiles, 0, i);
    });
    for (std::size_t now = 0; now < expected.size(); ++now) {
      up_to_barrier([&](auto& tiles) {
        tiles->refill();
        look(*tiles, now, stages);
        tiles->advance();
        look(*tiles, now + 1, 0);
      });
    }
    INFO("round " << round << ", kv_len " << kv_len << ", " << expected.size() << " tiles");
    REQUIRE(wrong == 0);
  }
}
