#include "cli/sequence_mask.hpp"

#include <utility>

#include "cli/call.hpp"
#include "runtime/call/plan_map.hpp"
#include "runtime/call/staged_plan.hpp"
#include "verify/sequences.hpp"

namespace tilewright::cli {
namespace {

TileLists lists_of(const PlanMap& map) {
  TileLists lists{.row_offsets = {0}, .indices = {}, .full_row_offsets = {0}, .full_indices = {}};
  for (std::int64_t h = 0; h < map.heads(); ++h) {
    for (std::int64_t q_block = 0; q_block < map.q_blocks(0); ++q_block) {
      const std::vector<PlanMap::Tile> row = map.row(0, h, q_block);
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto kv_block = static_cast<std::int32_t>(i);
        if (row[i] == PlanMap::Tile::partial) lists.indices.push_back(kv_block);
        if (row[i] == PlanMap::Tile::full) lists.full_indices.push_back(kv_block);
      }
      lists.row_offsets.push_back(static_cast<std::int64_t>(lists.indices.size()));
      lists.full_row_offsets.push_back(static_cast<std::int64_t>(lists.full_indices.size()));
    }
  }
  return lists;
}

}  // namespace

BlockMask mask_of_sequence(const Attention& attention, const CallInputs& inputs,
                           const Bindings& bindings) {
  const StagedPlan staged(attention, verify::packed_shape(inputs.problem()),
                          *inputs.problem().sequences, bindings);
  const PlanMap map(staged.plan(), attention.spec().block);
  MaskFingerprint fingerprint = attention.mask_fingerprint(inputs.shape(), bindings);
  if (map.heads() == 1) {
    fingerprint.shape.num_q_heads = fingerprint.shape.num_kv_heads = 1;
  }
  return BlockMask(std::move(fingerprint), lists_of(map), plan_path(attention.builds()),
                   staged.plan().state().tiles_evaluated.value_or(0));
}

}  // namespace tilewright::cli
