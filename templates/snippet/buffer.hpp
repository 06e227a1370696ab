#pragma once

#include "abi/cpu.hpp"
#include "cpu/element.hpp"
#include "cpu/inline.hpp"
#include "snippet/cell.hpp"

// A tensor that a snippet reads: `x[i]` in one dimension, `x(i, j)` in more, and x() where it has none,
// which snippets write as `x`. Unless the spec trusts it, an index is clamped to its extent, so that
// no snippet can read foreign memory.

namespace tw_snippet {

template <typename Element, typename Value, int kRank, bool kTrusted>
class tw_Buffer {
 public:
  tw_Buffer(const tilewright::abi::BufferArgument& argument)
      : data_(static_cast<const Element*>(argument.data)) {
    for (int i = 0; i < kRank; ++i) {
      last_[i] = static_cast<int>(argument.size[i] - 1);
      stride_[i] = argument.stride[i];
    }
  }

  template <typename Index>
  TW_MEMBER Value operator[](Index i) const requires(kRank == 1) {
    return load(offset(0, i));
  }

  template <typename... Indices>
  TW_MEMBER Value operator()(Indices... indices) const requires(sizeof...(Indices) == kRank) {
    int dim = 0;
    return load((0ll + ... + offset(dim++, indices)));
  }

  // Extent of a dimension.
  template <typename Index>
  TW_MEMBER int size(Index dim) const {
    return last_[tw_cell(dim, kRank - 1)] + 1;
  }

 private:
  template <typename Index>
  TW_MEMBER long long offset(int dim, Index i) const {
    if (kTrusted) return static_cast<long long>(i) * stride_[dim];
    return tw_cell(i, last_[dim]) * stride_[dim];
  }

  TW_MEMBER Value load(long long offset) const {
    return static_cast<Value>(tw_kernel::to_number(data_[offset]));
  }

  static constexpr int kDims = kRank > 0 ? kRank : 1;  // C++ has no empty arrays
  const Element* data_;
  int last_[kDims];  // greatest index of each dimension
  long long stride_[kDims];
};

}  // namespace tw_snippet
