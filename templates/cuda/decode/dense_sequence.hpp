#pragma once

#include "kernel/configuration.hpp"
#include "kernel/dense_arguments.hpp"
#include "snippet/snippets.hpp"

// The sequences of a dense call that a decode kernel computes: all have the call's lengths, and q and k begin
// with them.

namespace tw_kernel {

using ForwardArguments = DenseArguments;

struct PlacedSequence {
  __forceinline__ int q_len(const SnippetArguments& call) const { return call.q_len; }
  __forceinline__ int kv_len(const SnippetArguments& call) const { return call.kv_len; }
  __forceinline__ int q_offset(const SnippetArguments& call) const { return call.q_offset; }
  __forceinline__ int kv_offset(const SnippetArguments& call) const { return call.kv_offset; }

  // Its first rows in the tensors of a batch.
  __forceinline__ int q_begin() const { return 0; }
  __forceinline__ int kv_begin() const { return 0; }

  // Where lse has the rows of one head, [q_len].
  __forceinline__ long long lse_begin(const SnippetArguments& call, int b, int h) const {
    return (static_cast<long long>(b) * call.num_q_heads + h) * call.q_len;
  }

  __forceinline__ tw_snippet::tw_State state(const SnippetArguments& call) const {
    return tw_snippet::tw_make_state(call);
  }
};

}  // namespace tw_kernel
