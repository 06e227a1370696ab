#include "generator/tactic/decode_tactic.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "generator/tactic/cuda_tactic.hpp"

namespace tilewright {
namespace {

// Columns of a row in shared memory: whole steps of a matrix product, of which ldmatrix brings two
// where elements have one byte.
std::int64_t padded(const Spec& spec, std::int64_t columns) {
  return round_up(columns, is_quantised(spec.key_value_dtype()) ? 32 : 16);
}

// In addition to the dynamic part a block has static shared memory, most of it for the sums of
// warps (templates/cuda/decode/sum_of_warps.hpp), and the system takes 1 KB.
constexpr std::int64_t kStaticBytes = 12 * 1024;

}  // namespace

bool has_decode_kernel(const Spec& spec) {
  if (spec.has_dropout()) return false;
  // New rows and pages of two types do not share a ring.
  const bool mixes_types = spec.kv_new && spec.key_value_dtype() != spec.dtype;
  return uses_tensor_cores(spec) && !mixes_types && !spec.is_paged_x() && !spec.pads_rows();
}

// What counts is how many bytes of K and V are on their way: two blocks on a multiprocessor, or
// else more stages (notes on an H100: docs/lab/performance.md).
DecodeTactic decode_tactic(const Spec& spec, const Target& target) {
  const std::int64_t width = std::max(spec.tile_head_dim(), spec.tile_value_dim());
  const auto bytes = static_cast<std::int64_t>(size_of(spec.key_value_dtype()));
  const bool is_narrow = width * bytes <= 128 && spec.block[1] % 32 == 0;
  DecodeTactic tactic = {.kv_tile = is_narrow ? 32 : 16,
                         .warps = 4,
                         .stages = 1,
                         .q_in_registers = width <= 192,
                         .blocks_per_sm = 1,
                         .mask_unroll = 8};
  const auto fits = [&](std::int64_t blocks, std::int64_t stages) {
    tactic.blocks_per_sm = blocks;
    tactic.stages = stages;
    return blocks * (shared_bytes(spec, tactic) + kStaticBytes) <= max_shared_bytes(target);
  };
  for (const std::int64_t stages : {4, 3}) {
    if (fits(2, stages)) return tactic;
  }
  for (const std::int64_t stages : {4, 3, 2}) {
    if (fits(1, stages)) return tactic;
  }
  fits(1, 1);
  return tactic;
}

// kWeights of templates/cuda/decode/finish_item.hpp: four warps, each with four rows of a pass.
std::int64_t most_decode_blocks(const Spec& spec) {
  const std::int64_t value = padded(spec, spec.tile_value_dim());
  return 4 * 4 * ((value <= 128 ? value : value / 2) + 4);
}

std::int64_t shared_bytes(const Spec& spec, const DecodeTactic& tactic) {
  const std::int64_t head = padded(spec, spec.tile_head_dim());
  const std::int64_t value = padded(spec, spec.tile_value_dim());
  const auto bytes = static_cast<std::int64_t>(size_of(spec.key_value_dtype()));
  const std::int64_t ring = bytes * tactic.stages * tactic.kv_tile * (head + value);
  const std::int64_t q = tactic.q_in_registers ? 0 : 2 * kDecodeRows * head;
  return tactic.warps * ring + q;
}

}  // namespace tilewright
