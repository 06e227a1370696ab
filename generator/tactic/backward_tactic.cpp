#include "generator/tactic/backward_tactic.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "generator/tactic/cuda_tactic.hpp"

namespace tilewright {
namespace {

// Besides the dynamic part, a block has a little static shared memory.
constexpr std::int64_t kStaticSharedBytes = 1024;

std::int64_t padded(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Tiles that a block of 128 x 128 gets.
struct BackwardTiles {
  std::int64_t own, passing, stages, blocks;
};

// Bytes of a tile's row of keys and values, as templates/cuda/backward lays them out.
std::int64_t row_bytes(const Spec& spec) {
  const auto of = [&](std::int64_t dim) {
    return backward_uses_tensor_cores(spec) ? 2 * padded(dim, 16) : 4 * (padded(dim, 64) + 4);
  };
  return of(spec.head_dim) + of(spec.value_head_dim());
}

std::int64_t sweep_bytes(const Spec& spec, const BackwardTiles& choice, std::int64_t diagonals) {
  constexpr std::int64_t kFactBytes = 8;
  const std::int64_t rows = row_bytes(spec);
  const std::int64_t weights =
      backward_uses_tensor_cores(spec) ? 0 : choice.own * (choice.passing + 4) * 4;
  return choice.own * rows + choice.stages * choice.passing * (rows + kFactBytes) + weights +
         diagonals * choice.own * (choice.passing + 8) * 4;
}

// The greatest multiple of 16 up to `limit` that divides both sides of a block: a tile lies in one
// row of tiles, whichever side owns it.
std::int64_t tile_of(const Spec& spec, std::int64_t limit) {
  const std::int64_t side = std::gcd(spec.block[0], spec.block[1]);
  std::int64_t best = 16;
  for (std::int64_t tile = 16; tile <= std::min(side, limit); tile += 16) {
    if (side % tile == 0) best = tile;
  }
  return best;
}

// The best first; which of them fits depends on the GPU's shared memory.
std::vector<BackwardTiles> choices(const Spec& spec) {
  const std::int64_t width = std::max(spec.head_dim, spec.value_head_dim());
  if (!backward_uses_tensor_cores(spec)) {
    return {{64, 32, 1, 1}, {32, 32, 1, 1}, {32, 16, 1, 1}, {16, 16, 1, 1}};
  }
  if (width <= 64 && spec.score_mod.empty()) return {{128, 64, 2, 1}, {128, 32, 2, 1}};
  return {{128, 32, 2, 1}, {64, 32, 2, 1}, {64, 32, 1, 1}, {32, 32, 1, 1}, {16, 16, 1, 1}};
}

}  // namespace

bool splits_backward_columns(const Spec& spec) {
  return spec.head_dim + spec.value_head_dim() > 256;
}

bool backward_uses_tensor_cores(const Spec& spec) {
  return uses_tensor_cores(spec) && spec.output_dtype() == spec.dtype;
}

BackwardTactic choose_backward_tactic(const SpecFacts& facts, const Target& target,
                                      std::int64_t diagonals) {
  const Spec& spec = facts.spec;
  const bool on_tensor_cores = backward_uses_tensor_cores(spec);
  for (BackwardTiles choice : choices(spec)) {
    choice.own = tile_of(spec, choice.own);
    choice.passing = tile_of(spec, choice.passing);
    const std::int64_t bytes = sweep_bytes(spec, choice, diagonals);
    if (bytes > max_shared_bytes(target) - kStaticSharedBytes) continue;
    return {.tiles = {.q_tile = choice.own,
                      .kv_tile = choice.passing,
                      .warps = choice.own / (on_tensor_cores ? 16 : 8),
                      .stages = choice.stages,
                      .q_in_registers = false,
                      .blocks_per_sm = choice.blocks,
                      .mask_unroll = on_tensor_cores ? 8 : 2},
            .shared_bytes = bytes};
  }
  throw Error(ErrorCode::internal, "no tiles of the backward pass fit into shared memory");
}

}  // namespace tilewright
