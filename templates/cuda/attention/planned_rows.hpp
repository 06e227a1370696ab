#pragma once

#include "abi/plan.hpp"
#include "kernel/configuration.hpp"

// What packed and paged sequences have in common: the plan has clamped their lengths. A q tile has rows
// of one entry of the plan's work; snippets see the sequence's lengths.

namespace tw_kernel {

using ForwardArguments = PlannedArguments;
using tilewright::abi::SequenceRows;

struct PlannedRows {
  SequenceRows rows;
  int end_of_rows;     // where the rows of work end, from the sequence's first row on
  int begin_in_block;  // the q tile's first row, in its row of tiles; used where kSpansTwoBlocks

  // Where the kernel takes the rows to end.
  __forceinline__ int q_len(const SnippetArguments&) const { return end_of_rows; }
  __forceinline__ int kv_len(const SnippetArguments&) const { return rows.kv_len; }
  __forceinline__ int q_offset(const SnippetArguments&) const { return rows.q_offset; }
  __forceinline__ int kv_offset(const SnippetArguments&) const { return rows.kv_offset; }

  // Of the q tile, in its row of tiles.
  __forceinline__ int row_in_block(int) const { return begin_in_block; }

  // Its first rows in q and out, and in k and v.
  __forceinline__ int q_begin() const { return rows.q_begin; }
  __forceinline__ int kv_begin() const { return rows.kv_begin; }

  // Where lse, [num_q_heads, total_q], has the rows of one head.
  __forceinline__ long long lse_begin(const SnippetArguments& call, int, int h) const {
    return static_cast<long long>(h) * call.q_len + rows.q_begin;
  }
};

}  // namespace tw_kernel
