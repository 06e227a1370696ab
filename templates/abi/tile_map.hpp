#pragma once

// Which tiles of each sequence a packed call visits. The plan's kernel writes it, forward reads it.

namespace tilewright::abi {

constexpr int kTilesOfSpan = 32;

/// The state of 32 neighbouring tiles of one row of tiles, a bit each, the lowest for the first.
struct TileSpan {
  unsigned kept;     // tiles of which mask_mod keeps something
  unsigned partial;  // of them, those of which it also drops something
};

/// Rows of tiles of all sequences: a tile is block[0] rows of q by block[1] columns of one sequence.
/// Sequence b has the rows from PlannedSequence::tile_row on.
struct TileMap {
  TileSpan* spans;  // [heads][rows][spans_of_row]
  int heads;        // 1, or num_q_heads where mask_mod or lists of positions tell heads apart
  int rows;         // of a head: room for every sequence, whatever its length
  int spans_of_row;
};

/// The map's row that holds a sequence's first rows of q. It follows from where those begin, so that no
/// sum over sequences is needed: floor(begin / side) + b rows are enough for the sequences before, and
/// b more where rows of tiles begin at positions.
/// @param begin the sequence's first row in q
/// @param side  block[0]
constexpr int row_of_sequence(int begin, int b, int side) { return begin / side + b; }

/// Spans that a row of so many columns has.
/// @param side block[1]
constexpr long long spans_of_columns(long long columns, int side) {
  const long long columns_of_span = static_cast<long long>(kTilesOfSpan) * side;
  return (columns + columns_of_span - 1) / columns_of_span;
}

/// Rows of tiles that all sequences together have room for.
/// @param in_positions whether they begin at multiples of side in q_idx
constexpr long long tile_map_rows(long long total_q, long long batch, int side, bool in_positions) {
  return total_q / side + (in_positions ? 2 * batch : batch);
}

/// The map as a call for one row of tiles reads it.
struct TileMapRow {
  const TileSpan* spans;  // of the first head
  long long head_stride;  // spans from one head to the next; 0 where all share theirs
};

}  // namespace tilewright::abi
