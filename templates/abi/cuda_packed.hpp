#pragma once

#include "cuda_forward.hpp"
#include "decode.hpp"
#include "extrema.hpp"
#include "plan.hpp"
#include "tile_map.hpp"

// Arguments of the CUDA kernels that plan packed sequences and compute their attention.

namespace tilewright::abi::cuda {

/// A plan in device memory, by its parts.
struct PlanArguments {
  PlanHeader* header;
  PlannedSequence* sequences;  // [batch]
  TileMap map;                 // spans_of_row is 0 without mask_mod
  PlannedRow* work;            // [heads of the map][rows], of which header->rows are used
  int batch;
  int reserved;  // 0
  DecodeWork decode;  // no blocks where the spec has no decode kernel
};

/// plan_exact, plan_proved: reads the sequences' tensors, and writes all of a plan but for the
/// arrivals, which are 0 before and after.
///   void tilewright_plan(PlanKernelArguments, SnippetArguments<buffers, scalars>)
///       grid blocks_of_list * heads of the map; kPlanThreads threads
struct PlanKernelArguments {
  PlanArguments plan;
  unsigned* arrivals;  // [heads of the map]
  SequenceTensors tensors;
  PlanBounds bounds;
  int blocks_of_list;     // blocks of threads that decide the tiles of one list: any number
  int warps_of_sequence;  // of a list, that share one sequence's: 1 to all of the list's
  int parts_of_span;      // warps that share the tiles of a span: 1, 2 or 4; 1 with positions
  int kv_rows_of_group;   // a sequence's group is kv_begin / kv_rows_of_group, at most the last one
  int groups;             // 1 to kMostPlanGroups
  int reserved;           // 0
  BlockMaskArguments positions;  // read where the bounds say that there are some
  ExtremaTables tables;
};

constexpr int kPlanThreads = 512;

/// forward_prefill*: grid (work items, 1, 1), that is rows * (work side / q_tile) * num_q_heads.
///   void tilewright_forward(PackedForwardArguments, SnippetArguments<buffers, scalars>)
/// Batch strides are 0, or of pools of k and v a page's. mask, q_tiles and whole_groups are not read.
/// SnippetArguments has total_q as q_len and total_kv as kv_len.
struct PackedForwardArguments : ForwardArguments {
  PlanArguments plan;
};

/// forward_decode*: grid (decode.blocks, 1, 1); the same arguments.

/// The same where each sequence's last q_len columns are new rows: row q_begin + q_len - kv_len + c of k_new
/// and v_new is its column c.
struct NewRowsForwardArguments : PackedForwardArguments {
  TensorArgument k_new;  // [num_kv_heads, total_q, head_dim]
  TensorArgument v_new;  // [num_kv_heads, total_q, v_head_dim]
};

}  // namespace tilewright::abi::cuda
