#pragma once

#include "abi/decode.hpp"
#include "abi/plan.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// The items of a packed call, by their numbers: sequence by sequence, and in each from head to head, so that
// blocks of threads that run at the same time read neighbouring heads of the same rows.

namespace tw_kernel {

TW_INLINE int items_of_sequence(const ForwardArguments& arguments, const SnippetArguments& call) {
  return call.num_q_heads / arguments.heads_in_group;
}

// Here an item stands for a q tile (schedule.hpp).
TW_INLINE unsigned count_q_tiles(const ForwardArguments& arguments, const SnippetArguments& call) {
  return static_cast<unsigned>(arguments.plan.batch * items_of_sequence(arguments, call));
}

// Whether the decode kernel has its rows, or it has none.
TW_INLINE bool is_left_out(const ForwardArguments& arguments, const SnippetArguments& call,
                           const tilewright::abi::PlannedSequence& sequence) {
  const int decode_q_len = arguments.plan.decode.blocks > 0
                               ? tilewright::abi::most_decoded_rows(call.num_q_heads, call.num_kv_heads)
                               : 0;
  return sequence.q_len == 0 ||
         tilewright::abi::is_decoded(decode_q_len, kBlockQ, sequence.q_len, sequence.lead);
}

}  // namespace tw_kernel
