#pragma once

#include "abi/cpu_packed_backward.hpp"
#include "abi/tile_map.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"

// The backward pass of one sequence of a packed call: tiles come from the plan's tile map.

namespace tw_kernel {

using BackwardArguments = tilewright::abi::PackedBackwardArguments;

// Where lse has the rows of one head.
TW_INLINE long long lse_begin(const BackwardArguments& arguments, int, int h) {
  return h * arguments.lse_head_stride;
}

// Rows of q that q tiles are counted from.
TW_INLINE int row_count(const BackwardArguments& arguments) { return arguments.rows; }

// The columns that the map keeps for a row of tiles.
template <typename Visit>
TW_INLINE void visit_kept_columns(const BackwardArguments& arguments, int, int h, int, Visit&& visit) {
  using tilewright::abi::kTilesOfSpan;
  const tilewright::abi::TileSpan* const row = arguments.map.spans + h * arguments.map.head_stride;
  const int kv_len = arguments.snippet.kv_len;
  const long long spans = tilewright::abi::spans_of_columns(kv_len, kBlockKv);
  for (int i = 0; i < spans; ++i) {
    for (unsigned left = row[i].kept; left != 0; left &= left - 1) {
      const int bit = __builtin_ctz(left);
      const int begin = (i * kTilesOfSpan + bit) * kBlockKv;
      const int end = begin + kBlockKv < kv_len ? begin + kBlockKv : kv_len;
      visit(begin, end, (row[i].partial >> bit & 1u) != 0);
    }
  }
}

}  // namespace tw_kernel
