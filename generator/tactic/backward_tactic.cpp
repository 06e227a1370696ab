#include "generator/tactic/backward_tactic.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/tactic/cuda_tactic.hpp"

namespace tilewright {
namespace {

// In addition to the dynamic part, a block has a little static shared memory.
constexpr std::int64_t kStaticBackwardBytes = 1024;

// Tiles that a block of 128 x 128 gets.
struct BackwardTiles {
  std::int64_t own, passing, stages, blocks;
};

// Bytes of a tile's row of keys and values, as templates/cuda/backward lays them out.
std::int64_t row_bytes(const Spec& spec) {
  const auto of = [&](std::int64_t dim) {
    return backward_uses_tensor_cores(spec) ? 2 * round_up(dim, 16) : 4 * (round_up(dim, 64) + 4);
  };
  return of(spec.tile_head_dim()) + of(spec.tile_value_dim());
}

std::int64_t sweep_bytes(const Spec& spec, const BackwardTiles& choice, bool one_sweep,
                         std::int64_t diagonals) {
  constexpr std::int64_t kFactBytes = 8;
  const std::int64_t rows = row_bytes(spec);
  const std::int64_t weights =
      backward_uses_tensor_cores(spec) ? 0 : choice.own * (choice.passing + 4) * 4;
  const std::int64_t dx = one_sweep ? choice.own * choice.passing * 2 : 0;
  return choice.own * rows + choice.stages * choice.passing * (rows + kFactBytes) + weights +
         diagonals * choice.own * (choice.passing + 8) * 4 + dx;
}

// What a tile's side divides: both sides of a block, so that a tile lies in one row of tiles,
// whichever side owns it; of packed sequences also the rows of a plan's rows of tiles and of its
// entries of work.
std::int64_t common_side(const SpecFacts& facts, const Target& target) {
  const Spec& spec = facts.spec;
  const std::int64_t side = std::gcd(spec.block[0], spec.block[1]);
  if (!spec.is_packed()) return side;
  return std::gcd(side, std::gcd(plan_row_side(facts, target), plan_work_side(facts, target)));
}

// The greatest multiple of 16 up to `limit` that divides `side`.
std::int64_t tile_of(std::int64_t side, std::int64_t limit) {
  std::int64_t best = 16;
  for (std::int64_t tile = 16; tile <= std::min(side, limit); tile += 16) {
    if (side % tile == 0) best = tile;
  }
  return best;
}

// The best first; which of them fits depends on the GPU's shared memory.
std::vector<BackwardTiles> choices(const Spec& spec, bool one_sweep) {
  const std::int64_t width = std::max(spec.tile_head_dim(), spec.tile_value_dim());
  if (!backward_uses_tensor_cores(spec)) {
    return {{64, 32, 1, 1}, {32, 32, 1, 1}, {32, 16, 1, 1}, {16, 16, 1, 1}};
  }
  if (one_sweep) {
    // Sums of more columns, draws of dropout and a snippet's code leave registers for fewer rows.
    const bool is_plain = spec.score_mod.empty() && !spec.has_dropout();
    const std::int64_t rows = width <= 64 ? (is_plain ? 128 : 64) : (spec.has_dropout() ? 32 : 64);
    return {{128, rows, 2, 1}, {128, 32, 2, 1}, {128, 32, 1, 1}, {64, 32, 1, 1}, {16, 16, 1, 1}};
  }
  if (width <= 64 && spec.score_mod.empty()) return {{128, 64, 2, 1}, {128, 32, 2, 1}};
  return {{128, 32, 2, 1}, {64, 32, 2, 1}, {64, 32, 1, 1}, {32, 32, 1, 1}, {16, 16, 1, 1}};
}

}  // namespace

bool splits_backward_columns(const Spec& spec) {
  return spec.tile_head_dim() + spec.tile_value_dim() > 256;
}

bool backward_uses_tensor_cores(const Spec& spec) {
  return uses_tensor_cores(spec) && spec.output_dtype() == spec.dtype;
}

std::string why_not_one_sweep(const Spec& spec, const KernelVariant& kernel) {
  const auto names = [&](std::string_view name) {
    return std::find(spec.gradients.begin(), spec.gradients.end(), name) != spec.gradients.end();
  };
  if (kernel.deterministic) return "it adds to dq in whatever order";
  if (!kernel.aligned) return "its tensors must begin at multiples of 16 bytes";
  if (spec.is_packed()) return "its calls are not packed";
  if (!names("q") || !(names("k") || names("v"))) {
    return "it computes the gradient of q together with the gradient of k or v";
  }
  if (!backward_uses_tensor_cores(spec) || spec.key_value_dtype() != spec.dtype) {
    return "q, k, v and out must have one dtype, f16 or bf16";
  }
  if (spec.pads_rows()) return "its rows must be whole vectors of 16 bytes, at least two";
  if (splits_backward_columns(spec)) {
    return "head_dim and v_head_dim together are above 256, and dk and dv have separate blocks";
  }
  const std::vector<std::string> gradients = gradient_names(spec);
  if (!gradients.empty()) {
    return fmt::format("it does not sum the gradient of {}", gradients.front());
  }
  return {};
}

bool sweeps_backward_once(const Spec& spec, const KernelVariant& kernel) {
  return why_not_one_sweep(spec, kernel).empty();
}

BackwardTactic choose_backward_tactic(const SpecFacts& facts, const Target& target,
                                      const KernelVariant& kernel, std::int64_t diagonals) {
  const Spec& spec = facts.spec;
  const std::int64_t side = common_side(facts, target);
  const bool on_tensor_cores = backward_uses_tensor_cores(spec);
  const bool one_sweep = sweeps_backward_once(spec, kernel);
  for (BackwardTiles choice : choices(spec, one_sweep)) {
    choice.own = tile_of(side, choice.own);
    choice.passing = tile_of(side, choice.passing);
    const std::int64_t bytes = sweep_bytes(spec, choice, one_sweep, diagonals);
    if (bytes > max_shared_bytes(target) - kStaticBackwardBytes) continue;
    return {.tiles = {.q_tile = choice.own,
                      .kv_tile = choice.passing,
                      .warps = choice.own / (on_tensor_cores ? 16 : 8),
                      .stages = choice.stages,
                      .q_in_registers = false,
                      .blocks_per_sm = choice.blocks,
                      .mask_unroll = on_tensor_cores ? 8 : 2},
            .shared_bytes = bytes,
            .one_sweep = one_sweep};
  }
  throw Error(ErrorCode::internal, "no tiles of the backward pass fit into shared memory");
}

}  // namespace tilewright
