#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"

// The blocks that a block mask lists for a row of tiles.

namespace tw_kernel {

using tilewright::abi::BlockMaskArgument;

// Calls visit(begin, end, is_partial) for each listed block of a row of tiles: partial ones first.
template <typename Visit>
TW_INLINE void visit_lists(const BlockMaskArgument& lists, int b, int h, int block, int side,
                           int length, Visit&& visit) {
  b = lists.batch == 1 ? 0 : b;
  h = lists.heads == 1 ? 0 : h;
  const long long row = (static_cast<long long>(b) * lists.heads + h) * lists.q_blocks + block;
  const auto visit_block = [&](int index, bool is_partial) {
    const int begin = index * side;
    visit(begin, begin + side < length ? begin + side : length, is_partial);
  };
  for (long long i = lists.row_offsets[row]; i < lists.row_offsets[row + 1]; ++i) {
    visit_block(lists.indices[i], true);
  }
  for (long long i = lists.full_row_offsets[row]; i < lists.full_row_offsets[row + 1]; ++i) {
    visit_block(lists.full_indices[i], false);
  }
}

}  // namespace tw_kernel
