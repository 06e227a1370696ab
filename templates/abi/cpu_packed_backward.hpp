#pragma once

#include "cpu.hpp"
#include "tile_map.hpp"

// Arguments of the CPU kernels that compute gradients of packed sequences.

namespace tilewright::abi {

/// The backward pass over one sequence: batch strides are 0, and snippet has the sequence's lengths.
/// mask and columns are not read.
///   rows of q   q, out, dout, dq, lse and dlse begin at the first row of a row of tiles, k and v at
///               the sequence's, and snippet has that row's q_offset
///   columns     q, out, dout, lse and dlse begin at the sequence's first row; k, v, dk and dv are the
///               whole packed tensors
struct PackedBackwardArguments : BackwardArguments {
  long long lse_head_stride;  // elements from one head to the next: total_q
  int rows;                   // of the row of tiles
  TileMapRow map;             // of the row of tiles
};

/// The columns of one sequence, in one kv block, that a tile of packed rows of k has.
struct ColumnsOfTile {
  int first_column;  // of the tile's first lane; negative where the sequence begins later
  int begin;         // the lanes that are such columns: from begin to before end
  int end;
  // Masked kernels: the word of the map that has the kv block, in the sequence's first row of tiles.
  const TileSpan* spans;
  long long head_stride;  // spans from one head to the next; 0 where all share theirs
  long long row_stride;   // and from one row of tiles to the next
  int bit;                // of the kv block
  int q_blocks;           // rows of tiles of the sequence
  int lead;               // PlannedSequence::lead
};

// Entry points of backward of a packed spec:
//
//   tilewright_q_tile, tilewright_kv_tile, tilewright_scratch_bytes, as cpu.hpp says
//   void tilewright_backward_rows(const PackedBackwardArguments*, int b, int h, int q_tile, double* sums,
//        void* scratch);                           q_tile: of the row of tiles
//
//   A tile of packed rows of k begins at `first_row` and has `count` rows. Between begin and store come
//   all sequences that have rows of it.
//   void tilewright_backward_begin_columns(const PackedBackwardArguments*, int h_kv, int first_row,
//        int count, void* scratch);
//   void tilewright_backward_add_columns(const PackedBackwardArguments*, const ColumnsOfTile*, int b,
//        int h_kv, void* scratch);
//   void tilewright_backward_store_columns(const PackedBackwardArguments*, int h_kv, int first_row,
//        int count, void* scratch);

}  // namespace tilewright::abi
