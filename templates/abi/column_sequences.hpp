#pragma once

#include "plan.hpp"

// Which sequences each tile of rows of packed k and v has: what a plan also holds for gradients.

namespace tilewright::abi {

/// The sequences that may have rows of a tile are those from `first` to before `end`. None: first is
/// the batch, and end is 0.
struct ColumnSequences {
  int first;
  int end;
};

/// Tiles of all rows of k.
/// @param side rows of a tile
constexpr long long column_tiles(long long total_kv, int side) { return (total_kv + side - 1) / side; }

/// Whether a sequence has scores in columns that are rows of a tile.
constexpr bool has_rows_of_tile(const SequenceRows& rows, long long tile, int side) {
  return rows.q_len > 0 && rows.kv_len > 0 && rows.kv_begin < (tile + 1) * side &&
         rows.kv_begin + static_cast<long long>(rows.kv_len) > tile * side;
}

}  // namespace tilewright::abi
