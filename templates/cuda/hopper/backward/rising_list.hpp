#pragma once

#include "abi/cuda_forward.hpp"

// A row of one of a block mask's lists. Its indices rise.

namespace tw_kernel {

class RisingList {
 public:
  using Lists = tilewright::abi::cuda::BlockMaskArguments;
  static constexpr int kNone = 0x7fffffff;

  static __forceinline__ RisingList of_partial(const Lists& lists, int row) {
    return {lists.row_offsets + row, lists.indices};
  }
  static __forceinline__ RisingList of_full(const Lists& lists, int row) {
    return {lists.full_row_offsets + row, lists.full_indices};
  }

  // The i-th index, or kNone.
  __forceinline__ int at(int i) const { return i < count_ ? __ldg(indices_ + i) : kNone; }

  // The greatest, or -1.
  __forceinline__ int last() const { return count_ == 0 ? -1 : __ldg(indices_ + count_ - 1); }

  // How many are greater than one.
  __forceinline__ int count_after(int index) const {
    int begin = 0, end = count_;
#pragma unroll 1
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if (__ldg(indices_ + middle) > index) {
        end = middle;
      } else {
        begin = middle + 1;
      }
    }
    return count_ - begin;
  }

 private:
  __forceinline__ RisingList(const long long* offsets, const int* indices)
      : indices_(indices + __ldg(offsets)), count_(static_cast<int>(__ldg(offsets + 1) - __ldg(offsets))) {}

  const int* indices_;
  int count_;
};

}  // namespace tw_kernel
