#pragma once

#include "abi/merge.hpp"
#include "attention/merge_weights.hpp"
#include "cpu/element.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"

// The parts of rows, one row after the other.

namespace tw_kernel {

TW_INLINE void add_part(const OutElement* part, float weight, int width, float* sum) {
  for (int d = 0; d < width; ++d) sum[d] += weight * to_float(part[d]);
}

TW_INLINE void merge_row(const MergeArguments& call, long long index) {
  constexpr int kMostWidth = 256;
  const tilewright::abi::MergedPlace place =
      tilewright::abi::merged_place(call, static_cast<unsigned>(index));
  const MergedRow row = merged_row(call, index);
  const float inverse = 1.0f / row.sum;
  float sum[kMostWidth] = {};
  for (int i = 0; i < call.count; ++i) {
    const float lse = call.parts[i].lse[index];
    if (is_empty(lse)) continue;
    const tilewright::abi::MergeTensor& out = call.parts[i].out;
    add_part(static_cast<const OutElement*>(out.data) + tilewright::abi::offset_of(out, place),
             weight_of(lse, row.max) * inverse, call.width, sum);
  }
  OutElement* const to =
      static_cast<OutElement*>(call.out.data) + tilewright::abi::offset_of(call.out, place);
  for (int d = 0; d < call.width; ++d) from_float(sum[d], to + d);
  if (call.lse != nullptr) call.lse[index] = row.lse();
}

}  // namespace tw_kernel
