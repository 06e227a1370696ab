// The parts of lists of tiles of the Hopper kernel, run on the host.
#include <algorithm>
#include <random>
#include <vector>

#include "tests/generator/device_on_host.hpp"
#include "tests/generator/tile_lists.hpp"
#include "tests/support/catch.hpp"

#define SPLIT_ITEMS

namespace {

using std::max;
using std::min;

constexpr int kBlockKv = 128;
constexpr int kKvTile = 64;
constexpr bool kHasMaskMod = true;
struct ForwardArguments {
  struct {
    int parts;
  } splits;
};

#include "cuda/hopper/all_tiles.hpp"
#include "cuda/hopper/listed_tiles.hpp"

using tile_lists::Tile;
using tw_kernel::Part;

// A part without tiles visits what the planner gives it instead.
template <typename Tiles>
void append_visited(const typename Tiles::Lists& lists, int kv_len, std::vector<Tile>& seen) {
  if (lists.kv_tiles == 0) return;
  Tiles tiles(lists, kv_len);
  for (int i = lists.kv_tiles; i > 0; --i) {
    const auto tile = tiles.next();
    seen.push_back({tile.first(), tile.partial()});
  }
}

Part part_of(unsigned item, int parts) {
  return tw_kernel::part_of(ForwardArguments{{parts}}, item);
}

// Parts of q tile 5, one after another; each has its share of the blocks.
template <typename Tiles>
std::vector<Tile> all_parts(const BlockMaskArguments& mask, int kv_len, int parts) {
  std::vector<Tile> seen;
  for (int i = 0; i < parts; ++i) {
    const Part part = part_of(static_cast<unsigned>(5 * parts + i), parts);
    REQUIRE(part.number == i);
    const typename Tiles::Lists lists(mask, QTile{1}, part, kv_len);
    const std::size_t before = seen.size();
    append_visited<Tiles>(lists, kv_len, seen);
    REQUIRE(seen.size() - before == static_cast<std::size_t>(max(lists.kv_tiles, 0)));
    for (std::size_t j = before; j < seen.size(); ++j) {
      const bool needs_care = seen[j].partial || seen[j].first + kKvTile > kv_len;
      CHECK((!needs_care || static_cast<int>(j - before) < lists.masked_tiles));
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("Hopper parts of lists of tiles: together each tile once, in the order of the whole") {
  std::mt19937 random(2);
  const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  for (int round = 0; round < 300; ++round) {
    const int kv_blocks = 1 + below(12);
    const int kv_len = (kv_blocks - 1) * kBlockKv + 1 + below(kBlockKv);
    const auto [partial, full] = tile_lists::random_row(random, round, kv_blocks);
    std::vector<Tile> expected;
    append_tiles(full, kBlockKv, kKvTile, kv_len, false, expected);
    append_tiles(partial, kBlockKv, kKvTile, kv_len, true, expected);
    std::reverse(expected.begin(), expected.end());
    const BlockMaskArguments mask{partial.offsets.data(), partial.blocks.data(),
                                  full.offsets.data(), full.blocks.data()};
    const int parts = 1 + below(32);
    INFO("round " << round << ", kv_len " << kv_len << ", " << parts << " parts");
    REQUIRE(all_parts<tw_kernel::ListedTiles>(mask, kv_len, parts) == expected);
  }
}

TEST_CASE("Hopper parts of lists of tiles: without lists too, of nearly equal lengths") {
  for (const int kv_len : {1, 63, 64, 65, 640, 1000, 1 << 20}) {
    for (const int parts : {1, 2, 3, 7, 32}) {
      CAPTURE(kv_len, parts);
      std::vector<Tile> expected;
      for (int first = (kv_len - 1) / kKvTile * kKvTile; first >= 0; first -= kKvTile) {
        expected.push_back({first, true});
      }
      CHECK(all_parts<tw_kernel::AllTiles>({}, kv_len, parts) == expected);
      const int tiles = static_cast<int>(expected.size());
      for (int i = 0; i < parts; ++i) {
        const int count = part_of(static_cast<unsigned>(i), parts).count(tiles);
        CHECK((count == tiles / parts || count == tiles / parts + 1));
      }
    }
  }
}

TEST_CASE("Hopper parts of lists of tiles: items of one q tile are neighbours") {
  const ForwardArguments arguments{{3}};
  CHECK(tw_kernel::count_items(arguments, 7) == 21);
  for (unsigned item = 0; item < 21; ++item) {
    CHECK(tw_kernel::q_tile_of(arguments, item) == item / 3);
    CHECK(tw_kernel::part_of(arguments, item).item == item);
  }
}
