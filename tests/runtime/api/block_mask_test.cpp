#include "runtime/api/block_mask.hpp"

#include <functional>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "runtime/call/mask_placement.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
using Tile = BlockMask::Tile;

namespace {

// q_len 300 and kv_len 500 in blocks of 128: 3 rows of 4 tiles.
MaskFingerprint fingerprint() {
  return {
      .source = {.mask_mod = "q_idx >= kv_idx", .block = {128, 128}, .scalars = {{"window", 0}}},
      .shape = {.q_len = 300, .kv_len = 500},
      .scalars = {64.0}};
}

TileLists causal_lists() {
  return {.row_offsets = {0, 1, 2, 3},
          .indices = {0, 1, 2},
          .full_row_offsets = {0, 0, 1, 3},
          .full_indices = {0, 0, 1}};
}

BlockMask causal() {
  return BlockMask(fingerprint(), causal_lists(), "exact", 12);
}

std::string refusal(TileLists lists) {
  try {
    const BlockMask mask(fingerprint(), std::move(lists), "exact", 12);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::block_mask);
    return error.what();
  }
  return "accepted";
}

std::string refusal_with(const std::function<void(TileLists&)>& change) {
  TileLists lists = causal_lists();
  change(lists);
  return refusal(std::move(lists));
}

Bindings bindings_with_window(double window) {
  const Spec spec{.dtype = f32, .head_dim = 16, .scalars = {{"window", {.dtype = i32}}}};
  return Bindings(spec, {.scalars = {{"window", window}}});
}

// Lists that stand in for those of a GPU: a test changes them as a rebuild would.
class ChangingLists final : public DeviceTileLists {
 public:
  explicit ChangingLists(std::uint64_t context) : DeviceTileLists(context) {}
  TileLists to_host() const override { return lists; }
  std::optional<TileLists> transposed_to_host() const override { return std::nullopt; }
  TileCounts counts() const override { return {}; }

  TileLists lists = causal_lists();
};

std::string misfit(const MaskSource& source, const Shape& shape, double window) {
  try {
    require_fit(causal(), source, shape, bindings_with_window(window));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::block_mask);
    return error.what();
  }
  return "fits";
}

}  // namespace

TEST_CASE("block mask: counts, density and bytes follow the lists") {
  const BlockMask mask = causal();
  REQUIRE(mask.q_blocks() == 3);
  REQUIRE(mask.kv_blocks() == 4);
  REQUIRE(mask.partial_tiles() == 3);
  REQUIRE(mask.full_tiles() == 3);
  REQUIRE(mask.empty_tiles() == 6);
  REQUIRE(mask.density() == 0.5);
  REQUIRE(mask.bytes() == 2 * 4 * 8 + 6 * 4);
}

TEST_CASE("block mask: a row shows each tile's state") {
  REQUIRE(causal().row(0, 0, 2) ==
          std::vector<Tile>{Tile::full, Tile::full, Tile::partial, Tile::empty});
}

TEST_CASE("block mask: rows are ordered by their number of tiles, ties by row") {
  const BlockMask mask = causal();
  REQUIRE(std::vector<std::int32_t>(mask.q_tile_order().begin(), mask.q_tile_order().end()) ==
          std::vector<std::int32_t>{2, 1, 0});
}

TEST_CASE("block mask: wrong lists are refused with their first bad entry") {
  REQUIRE(refusal(causal_lists()) == "accepted");
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.row_offsets.pop_back(); }),
               ContainsSubstring("3 row offsets for 3 rows"));
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.row_offsets[0] = 1; }),
               ContainsSubstring("first row offset is 1"));
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.row_offsets[3] = 4; }),
               ContainsSubstring("last row offset is 4, but there are 3"));
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.row_offsets[1] = 3; }),
               ContainsSubstring("row offset 2 is 2 after 3"));
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.indices[1] = 4; }),
               ContainsSubstring("row 1 holds kv block 4; there are 4"));
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.indices[1] = -1; }),
               ContainsSubstring("row 1 holds kv block -1"));
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.full_indices[2] = 0; }),
               ContainsSubstring("full list is wrong: row 2 holds kv block 0 after 0"));
  REQUIRE_THAT(refusal_with([](TileLists& l) { l.indices[2] = 1; }),
               ContainsSubstring("row 2 holds kv block 1 as partial and as full"));
}

TEST_CASE("block mask: a call that differs from what the mask was built from is refused") {
  const MaskFingerprint built = fingerprint();
  REQUIRE(misfit(built.source, built.shape, 64) == "fits");

  Shape longer = built.shape;
  longer.kv_len = 501;
  REQUIRE_THAT(misfit(built.source, longer, 64),
               ContainsSubstring("built for kv_len 500, but this call has 501"));
  Shape moved = built.shape;
  moved.q_offset = 1;
  REQUIRE_THAT(misfit(built.source, moved, 64), ContainsSubstring("q_offset 0"));
  MaskSource other = built.source;
  other.mask_mod = "true";
  REQUIRE_THAT(misfit(other, built.shape, 64), ContainsSubstring("mask_mod"));
  MaskSource finer = built.source;
  finer.block = {64, 128};
  REQUIRE_THAT(misfit(finer, built.shape, 64), ContainsSubstring("q block"));
  REQUIRE_THAT(misfit(built.source, built.shape, 65),
               ContainsSubstring("window 64, but this call has 65"));
}

TEST_CASE("block mask: a scalar that is NaN is like itself, and unlike a number") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Spec spec{.dtype = f32, .head_dim = 16, .scalars = {{"cap", {.dtype = f32}}}};
  MaskFingerprint built = fingerprint();
  built.source.scalars = {{"cap", 0}};
  built.scalars = {nan};
  const BlockMask mask(built, causal_lists(), "exact", 12);
  const auto fit = [&](double value) {
    require_fit(mask, built.source, built.shape, Bindings(spec, {.scalars = {{"cap", value}}}));
  };
  REQUIRE_NOTHROW(fit(nan));
  REQUIRE_THROWS_WITH(fit(1), ContainsSubstring("cap nan, but this call has 1"));
  REQUIRE(mask == BlockMask(mask));
}

TEST_CASE("block mask: one list serves any batch and any heads") {
  Shape shape = fingerprint().shape;
  shape.batch = 4;
  shape.num_q_heads = 8;
  REQUIRE(misfit(fingerprint().source, shape, 64) == "fits");
}

TEST_CASE("block mask: more rows or columns of tiles than can be counted are refused") {
  REQUIRE(count_tile_rows(3, 5, 7) == 105);
  REQUIRE_THROWS_WITH(count_tile_rows(std::int64_t{1} << 32, std::int64_t{1} << 32, 1),
                      ContainsSubstring("more than 2^31 - 1 rows of tiles"));
  MaskFingerprint built = fingerprint();
  built.shape.batch = built.shape.num_q_heads = std::int64_t{1} << 32;
  REQUIRE_THROWS_AS(BlockMask(built, causal_lists(), "exact", 12), Error);
  REQUIRE_THROWS_AS(transpose(causal_lists(), 1, std::int64_t{1} << 60), Error);
}

TEST_CASE("block mask: transposed lists hold the same tiles by columns") {
  const BlockMask mask = causal();
  const TileLists& by_columns = mask.transposed();
  REQUIRE(by_columns == TileLists{.row_offsets = {0, 1, 2, 3, 3},
                                  .indices = {0, 1, 2},
                                  .full_row_offsets = {0, 2, 3, 3, 3},
                                  .full_indices = {1, 2, 2}});
  REQUIRE(transpose(by_columns, 4, 3) == causal_lists());
}

TEST_CASE("block mask: lists that were asked for stay while a GPU's mask is built again") {
  const auto on_gpu = std::make_shared<ChangingLists>(1);
  const BlockMask mask(fingerprint(), on_gpu, std::nullopt, "exact");
  const std::shared_ptr<const HostTileLists> before = mask.on_host();
  const TileLists* const same = &mask.lists();
  REQUIRE(same == &before->lists);
  REQUIRE(mask.transposed() == transpose(causal_lists(), 3, 4));

  on_gpu->lists.full_indices[0] = 3;
  REQUIRE(mask.lists() == on_gpu->lists);
  REQUIRE(mask.transposed() == transpose(on_gpu->lists, 3, 4));
  REQUIRE(before->lists == causal_lists());
}

TEST_CASE("block mask: a copy in another context follows the lists") {
  const auto on_gpu = std::make_shared<ChangingLists>(1);
  const BlockMask mask(fingerprint(), on_gpu, std::nullopt, "exact");
  std::vector<TileLists> copied;
  const auto copy = [&](const HostTileLists& host) {
    copied.push_back(host.lists);
    return std::make_shared<ChangingLists>(2);
  };
  REQUIRE(MaskPlacement::on_device(mask, 1, copy) == on_gpu);
  REQUIRE(copied.empty());
  const auto first = MaskPlacement::on_device(mask, 2, copy);
  REQUIRE(MaskPlacement::on_device(mask, 2, copy) == first);
  REQUIRE(copied == std::vector<TileLists>{causal_lists()});
  on_gpu->lists.full_indices[0] = 3;
  REQUIRE(MaskPlacement::on_device(mask, 2, copy) != first);
  REQUIRE(copied.back() == on_gpu->lists);
}

TEST_CASE("block mask: tiles taken from another mask reach all copies, those of a GPU stay") {
  BlockMask mask = causal();
  const BlockMask copy = mask;
  const std::shared_ptr<const HostTileLists> kept = mask.on_host();
  TileLists fewer = causal_lists();
  fewer.full_row_offsets.back() = 2;
  fewer.full_indices.pop_back();
  mask.take_tiles(BlockMask(fingerprint(), fewer, "proved", 1));
  REQUIRE(copy.lists() == fewer);
  REQUIRE(copy.full_tiles() == 2);
  REQUIRE(copy.path() == "proved");
  REQUIRE(kept->lists == causal_lists());

  BlockMask of_gpu(fingerprint(), std::make_shared<ChangingLists>(1), std::nullopt, "exact");
  REQUIRE_THROWS_WITH(of_gpu.take_tiles(mask), ContainsSubstring("lies on a GPU"));
}
