#include "runtime/cuda/grid_size.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr int kMultiprocessors = 132;

// One row of 128 x 128 tiles, `full` of which are visited.
BlockMask mask_of(std::int64_t full) {
  TileLists lists{.row_offsets = {0, 0}, .indices = {}, .full_row_offsets = {0, full}};
  for (int i = 0; i < full; ++i) lists.full_indices.push_back(i);
  MaskFingerprint fingerprint;
  fingerprint.shape = {
      .batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 128, .kv_len = 128 * 64};
  fingerprint.source.block = {128, 128};
  return BlockMask(fingerprint, lists, "lists", 0);
}

KernelLaunch launch_of(GridSize grid) {
  KernelLaunch launch;
  launch.kv_box_rows = 128;
  launch.grid = grid;
  return launch;
}

std::int64_t blocks(GridSize grid, const BlockMask* mask = nullptr, std::int64_t q_tiles = 1000) {
  return cuda::grid_size(launch_of(grid), q_tiles, mask, kMultiprocessors);
}

}  // namespace

TEST_CASE("grid size: one block of threads for each q tile or each multiprocessor") {
  CHECK(blocks(GridSize::q_tiles) == 1000);
  CHECK(blocks(GridSize::multiprocessors) == kMultiprocessors);
  CHECK(blocks(GridSize::multiprocessors, nullptr, 7) == 7);
}

TEST_CASE("grid size: long rows are dealt out one by one, short ones in turns") {
  const BlockMask dense = mask_of(64), sparse = mask_of(3);
  CHECK(blocks(GridSize::by_row_length, &dense) == 1000);
  CHECK(blocks(GridSize::by_row_length, &sparse) == kMultiprocessors);
  CHECK(blocks(GridSize::by_row_length, nullptr) == kMultiprocessors);
}
