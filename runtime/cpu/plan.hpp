#pragma once

#include <cstdint>

#include "../api/executor.hpp"
#include "../call/plan_state.hpp"
#include "mask_kernel.hpp"

namespace tilewright::cpu {

/// A plan in memory of the host, by its parts.
struct PlanView {
  abi::PlanHeader* header;
  abi::PlannedSequence* sequences;  ///< [batch]
  abi::TileSpan* spans;             ///< [heads][rows][spans_of_row]
  abi::PlannedRow* work;            ///< [heads][rows], of which header->rows are used
  abi::ColumnSequences* columns;    ///< [column_tiles], where the plan serves backward

  explicit PlanView(const PlanState& plan);

  /// The map's row of one list, [spans_of_row].
  abi::TileSpan* spans_of(const PlanGeometry& geometry, int head, const abi::PlannedRow& row) const;

  /// Rows of q of a row of tiles, from the sequence's first on.
  abi::RowsOfTiles rows_of(const PlanGeometry& geometry, const abi::PlannedRow& row) const;
};

/// Spans of the map from one head's row to the next one's; 0 where all heads share theirs.
inline std::int64_t map_head_stride(const PlanGeometry& geometry) {
  return geometry.heads == 1 ? 0 : std::int64_t{geometry.rows} * geometry.spans_of_row;
}

/// Marks tiles of a row of the map, which must not be marked yet.
void set_tiles(abi::TileSpan* spans, int begin, int end, bool partial);

/// What a snippet's kernel takes for all sequences of a packed call.
abi::SnippetArguments packed_arguments(const BindingArguments& bindings, const PlanState& plan);

/// The same for sequence b.
/// @param call from packed_arguments
abi::SnippetArguments of_sequence(abi::SnippetArguments call, const abi::PlannedSequence& sequence,
                                  int b);

/// Reads the sequences' tensors, clamps them, decides tiles, and orders rows of tiles.
/// @param mask null where the spec has no mask_mod
/// @return the tiles that were evaluated element by element
std::int64_t build_plan(const PlanState& plan, const MaskKernel* mask,
                        const BindingArguments& bindings, Executor& threads);

}  // namespace tilewright::cpu
