#pragma once

#include "column_sequences.hpp"
#include "cuda_backward.hpp"
#include "cuda_hopper_backward.hpp"
#include "cuda_packed.hpp"
#include "plan.hpp"
#include "tile_map.hpp"

// Arguments of the kernels that compute gradients of packed sequences on a GPU.

namespace tilewright::abi::cuda {

/// Batch strides are 0, and q_len and kv_len of the call are total_q and total_kv; lse, dlse and facts
/// have a row for each row of q, of one head after the other. mask and columns are not read.
struct PackedBackwardArguments : BackwardArguments {
  PlanArguments plan;
  const ColumnSequences* column_sequences;  // [column_tiles]; null: there are no sequences
  // Whether sequences share rows of k: the portable kernels then compute, and end at once where none do. Null: they
  // compute in any case.
  const int* shares_rows;
};

/// Which sequences each tile of rows of k has, after the plan's sequences are known.
struct ColumnPlanArguments {
  const PlannedSequence* sequences;  // [batch]
  ColumnSequences* columns;          // [tiles]
  long long tiles;
  int batch;
  int reserved;  // 0
};

/// The columns of one sequence that a block of threads owns on Hopper; of one kv head.
struct PlannedColumns {
  SequenceRows rows;
  int sequence;     // -1: there are none
  int first;        // of the columns
  int tile_row;     // of the tile map: the sequence's first
  int first_tile;   // of PlannedRowTile: likewise
  int reserved[2];  // 0
};

/// Rows of q of one sequence that pass by together on Hopper.
struct PlannedRowTile {
  int begin;  // in q
  int count;  // 0: no sequence has the tile
};

/// Tiles of rows of q that all sequences have room for. Sequence b has those from row_of_sequence(q_begin, b, side) on.
/// @param side rows of a tile
constexpr long long planned_row_tiles(long long total_q, long long batch, int side) {
  return total_q / side + batch;
}

/// Tiles of columns that sequences have which share none.
/// @param side columns of a tile
constexpr long long planned_columns(long long total_kv, long long batch, int side) {
  return total_kv / side + batch;
}

/// Which columns and rows of q Hopper's kernels work on, after the plan's sequences are known.
struct TilePlanArguments {
  const PlannedSequence* sequences;  // [batch]
  PlannedColumns* columns;           // [column_tiles], in the order in which blocks of threads take them
  PlannedRowTile* rows;              // [row_tiles]
  int* shares_rows;                  // set to 1 where sequences share rows of k; null: it is not looked for
  int column_tiles;
  int row_tiles;
  int batch;
  int q_rows_of_group;  // sequences whose q begins within so many rows are worked on side by side
};

/// What Hopper's kernels share in packed calls; batch strides are 0, as in PackedBackwardArguments. q_tiles, kv_tiles
/// and heads_in_group are of all sequences: row_tiles, column_tiles and kv heads.
struct PackedHopperBackwardArguments : HopperBackwardArguments {
  TileMap map;
  const PlannedColumns* planned;     // [kv_tiles]
  const PlannedRowTile* row_tiles;   // [q_tiles]
  const PlannedSequence* sequences;
  const ColumnSequences* column_sequences;
  const int* shares_rows;  // not 0: the portable kernels compute. Null: sequences share no rows
  int column_side;         // of column_sequences
  int total_kv;
};

// Entry points of a packed spec's backward on Hopper, in addition to cuda_hopper_backward.hpp's, which take
// PackedHopperBackwardArguments:
//   grid of tilewright_backward_prepare: also groups of kPlainThreads rows of k of all kv heads
//   grid of tilewright_backward_main: kv_tiles * num_kv_heads
//   void tilewright_backward_plan_tiles(TilePlanArguments)
//        grid: groups of kPlainThreads of column_tiles + row_tiles + batch; kPlainThreads threads

// Further entry points of backward of a packed spec, in addition to cuda_backward.hpp's:
//   grid of tilewright_backward_columns: parts * tiles of rows of k * num_kv_heads
//   grid of tilewright_backward_rows: rows of the plan's map * (work side / q_tile) * num_q_heads
//   void tilewright_backward_plan_columns(ColumnPlanArguments)
//        grid: groups of kPlainThreads tiles; kPlainThreads threads

}  // namespace tilewright::abi::cuda
