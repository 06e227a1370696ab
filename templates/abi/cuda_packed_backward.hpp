#pragma once

#include "column_sequences.hpp"
#include "cuda_backward.hpp"
#include "cuda_packed.hpp"
#include "plan.hpp"

// Arguments of the kernels that compute gradients of packed sequences on a GPU.

namespace tilewright::abi::cuda {

/// Batch strides are 0, and q_len and kv_len of the call are total_q and total_kv; lse, dlse and facts
/// have a row for each row of q, of one head after the other. mask and columns are not read.
struct PackedBackwardArguments : BackwardArguments {
  PlanArguments plan;
  const ColumnSequences* column_sequences;  // [column_tiles]; null: there are no sequences
};

/// Which sequences each tile of rows of k has, after the plan's sequences are known.
struct ColumnPlanArguments {
  const PlannedSequence* sequences;  // [batch]
  ColumnSequences* columns;          // [tiles]
  long long tiles;
  int batch;
  int reserved;  // 0
};

// Further entry points of backward of a packed spec, in addition to cuda_backward.hpp's:
//   grid of tilewright_backward_columns: parts * tiles of rows of k * num_kv_heads
//   grid of tilewright_backward_rows: rows of the plan's map * (work side / q_tile) * num_q_heads
//   void tilewright_backward_plan_columns(ColumnPlanArguments)
//        grid: groups of kPlainThreads tiles; kPlainThreads threads

}  // namespace tilewright::abi::cuda
