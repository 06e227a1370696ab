#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "cpu/visit_lists.hpp"
#include "kernel/configuration.hpp"

// The backward pass of a dense call: all batches have its lengths, and tiles come from block masks.

namespace tw_kernel {

using tilewright::abi::BackwardArguments;

// Where lse has the rows of one head, [q_len].
TW_INLINE long long lse_begin(const BackwardArguments& arguments, int b, int h) {
  const tilewright::abi::SnippetArguments& call = arguments.snippet;
  return (static_cast<long long>(b) * call.num_q_heads + h) * call.q_len;
}

// Rows of q that q tiles are counted from.
TW_INLINE int row_count(const BackwardArguments& arguments) { return arguments.snippet.q_len; }

// The columns that mask_mod keeps something of, for the rows of a q tile.
template <typename Visit>
TW_INLINE void visit_kept_columns(const BackwardArguments& arguments, int b, int h, int first_row,
                                  Visit&& visit) {
  visit_lists(arguments.mask, b, h, first_row / kBlockQ, kBlockKv, arguments.snippet.kv_len, visit);
}

}  // namespace tw_kernel
