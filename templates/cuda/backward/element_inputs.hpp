#pragma once

#include "cuda/attention/split_index.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/unknown_zero.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/sequence.hpp"
#include "snippet/snippets.hpp"

// Where the elements of a block's tiles lie in the call.

namespace tw_kernel {

// What the elements of a block's tiles share. A block owns rows of q, and tiles of columns pass by, or it
// owns columns and tiles of rows pass by.
struct ElementInputs {
  const SnippetArguments* call;
  PlacedSequence sequence;
  tw_snippet::tw_State state;
  int b;
  int h;
  int h_kv;
  int first_own;
  float factor;  // scores are q.k times this

  __forceinline__ int q_len() const { return sequence.q_len(*call); }
  __forceinline__ int kv_len() const { return sequence.kv_len(*call); }
  __forceinline__ int q_offset() const { return sequence.q_offset(*call); }
  __forceinline__ int kv_offset() const { return sequence.kv_offset(*call); }
};

constexpr float kLog2E = 1.44269504088896341f;

// What scores are multiplied by before score_mod, and where there is none, before the exponent.
TW_INLINE float score_factor(float scale) {
  return kHasScoreMod || kExactSoftmax ? scale : scale * kLog2E;
}

// Where element (i, j) of a thread lies in the call.
template <bool kOwnsRows>
class ElementIndices {
 public:
  __forceinline__ ElementIndices(const ElementInputs& inputs, int first_passing)
      : own_(inputs.first_own + row_of(0)),
        passing_(first_passing + column_of(0)),
        first_q_idx_(as_unknown((kOwnsRows ? own_ : passing_) + inputs.q_offset())),
        first_kv_idx_(as_unknown((kOwnsRows ? passing_ : own_) + inputs.kv_offset())),
        inputs_(inputs) {}

  __forceinline__ int q_idx(int i, int j) const { return split_q_idx(i, j).value(); }
  __forceinline__ int kv_idx(int i, int j) const { return split_kv_idx(i, j).value(); }

  // As score_mod takes them.
  __forceinline__ tw_snippet::tw_RowIndex row_index(int i, int j) const {
    return make_index<tw_snippet::tw_RowIndex>(split_q_idx(i, j), first_kv_idx_);
  }
  __forceinline__ tw_snippet::tw_ColumnIndex column_index(int i, int j) const {
    return make_index<tw_snippet::tw_ColumnIndex>(split_kv_idx(i, j), first_kv_idx_);
  }

  __forceinline__ int own(int i) const { return own_ + row_offset(i); }
  __forceinline__ int passing(int j) const { return passing_ + column_offset(j); }

 private:
  __forceinline__ SplitIndex split_q_idx(int i, int j) const {
    if (!kBoundsIndices) return {first_q_idx_, kOwnsRows ? row_offset(i) : column_offset(j)};
    return {bounded(kOwnsRows ? own(i) : passing(j), inputs_.q_len()) + inputs_.q_offset(), 0};
  }
  __forceinline__ SplitIndex split_kv_idx(int i, int j) const {
    if (!kBoundsIndices) return {first_kv_idx_, kOwnsRows ? column_offset(j) : row_offset(i)};
    return {bounded(kOwnsRows ? passing(j) : own(i), inputs_.kv_len()) + inputs_.kv_offset(), 0};
  }

  // Columns of packed sequences may also be before the first.
  static __forceinline__ int bounded(int index, int length) {
    return kPacked ? max(min(index, length - 1), 0) : min(index, length - 1);
  }

  int own_;
  int passing_;
  // Of element (0, 0). The compiler would take the sums apart, and add each offset to each element's difference anew.
  int first_q_idx_;
  int first_kv_idx_;
  const ElementInputs& inputs_;
};

}  // namespace tw_kernel
