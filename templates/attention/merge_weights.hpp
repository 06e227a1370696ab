#pragma once

#include "abi/merge.hpp"
#include "kernel/language.hpp"
#include "math/elementary.hpp"

// How much each part of a row counts: exp(lse_i) / sum of exp(lse_j).

namespace tw_kernel {

using tilewright::abi::MergeArguments;

// A part without kept columns has the lse -inf. Its out is not read.
TW_INLINE bool is_empty(float lse) {
  return lse == -__builtin_inff();
}

// Equal infinities differ by 0.
TW_INLINE float weight_of(float lse, float max) {
  return lse == max ? 1.0f : tw_math::exp(lse - max);
}

struct MergedRow {
  float max;  // greatest lse of the parts
  float sum;  // of exp(lse - max); 0 where every part is empty

  TW_MEMBER float lse() const { return sum == 0.0f ? -__builtin_inff() : max + tw_math::log(sum); }
};

// index: of the row among all rows of all heads
TW_INLINE MergedRow merged_row(const MergeArguments& call, long long index) {
  MergedRow row = {-__builtin_inff(), 0.0f};
  for (int i = 0; i < call.count; ++i) {
    const float lse = call.parts[i].lse[index];
    row.max = lse > row.max ? lse : row.max;
  }
  for (int i = 0; i < call.count; ++i) {
    const float lse = call.parts[i].lse[index];
    if (!is_empty(lse)) row.sum += weight_of(lse, row.max);
  }
  return row;
}

}  // namespace tw_kernel
