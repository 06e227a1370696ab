#include "runtime/cpu/position_lists.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ceil_div.hpp"

namespace tilewright::cpu {
namespace {

// One row of one of the two lists, as far as the sequence has such tiles.
void set_listed(const std::vector<std::int64_t>& offsets, const std::vector<std::int32_t>& indices,
                std::int64_t row, std::int64_t kv_blocks, bool partial, abi::TileSpan* spans) {
  const auto at = static_cast<std::size_t>(row);
  for (std::int64_t i = offsets[at]; i < offsets[at + 1]; ++i) {
    const int tile = indices[static_cast<std::size_t>(i)];
    if (tile >= kv_blocks) return;
    set_tiles(spans, tile, tile + 1, partial);
  }
}

}  // namespace

PositionLists::PositionLists(const PlanState& plan, const PlanView& view)
    : plan_(plan), view_(view), host_(plan.positions->on_host()) {}

void PositionLists::copy(int head, const abi::PlannedRow& row) const {
  const abi::PlannedSequence& sequence = view_.sequences[row.sequence];
  const PlanGeometry& geometry = plan_.geometry;
  abi::TileSpan* const spans = view_.spans_of(geometry, head, row);
  std::fill_n(spans, geometry.spans_of_row, abi::TileSpan{});
  const BlockMask& mask = *plan_.positions;
  const int block = abi::position_block(sequence, sequence.lead, row.q_block,
                                        static_cast<int>(geometry.block[0]));
  if (block < 0 || block >= mask.q_blocks()) return;
  const std::int64_t list_row = (mask.heads() == 1 ? 0 : head) * mask.q_blocks() + block;
  const std::int64_t kv_blocks = ceil_div(sequence.kv_len, geometry.block[1]);
  const TileLists& lists = host_->lists;
  set_listed(lists.row_offsets, lists.indices, list_row, kv_blocks, true, spans);
  set_listed(lists.full_row_offsets, lists.full_indices, list_row, kv_blocks, false, spans);
}

}  // namespace tilewright::cpu
