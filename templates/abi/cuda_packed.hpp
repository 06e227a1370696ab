#pragma once

#include "cuda_forward.hpp"
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
};

/// plan_exact, plan_proved: reads the sequences' tensors, and writes all of a plan but for
/// header->arrived, which is 0 before and after.
///   void tilewright_plan(PlanKernelArguments, SnippetArguments<buffers, scalars>)
///       grid blocks_of_sequence * sequences, either of any number; kPlanThreads threads
struct PlanKernelArguments {
  PlanArguments plan;
  SequenceTensors tensors;
  PlanBounds bounds;
  int blocks_of_sequence;  // blocks of threads that share the rows of one sequence
  int kv_rows_of_group;    // a sequence's group is kv_begin / kv_rows_of_group, at most the last one
  int groups;              // 1 to kMostPlanGroups
  int reserved;            // 0
  BlockMaskArguments positions;  // read where the bounds say that there are some
  ExtremaTables tables;
};

constexpr int kPlanThreads = 256;

/// forward_prefill*: grid (work items, 1, 1), that is rows * (block[0] / q_tile) * num_q_heads.
///   void tilewright_forward(PackedForwardArguments, SnippetArguments<buffers, scalars>)
/// Batch strides are 0, mask, q_tiles and whole_groups are not read, and SnippetArguments has total_q as q_len and
/// total_kv as kv_len.
struct PackedForwardArguments : ForwardArguments {
  PlanArguments plan;
};

}  // namespace tilewright::abi::cuda
