#pragma once

namespace tw_kernel {

// Columns of one row as a sum of powers of two on top of 2^23, whose mantissa is an integer. That takes an
// addition of floats under a predicate for each, while their comparisons keep the integer units busy,
// which have half the throughput.
class ColumnSum {
 public:
  static constexpr int kMostColumns = 23;

  __forceinline__ void add(int column, bool keep) {
    if (keep) sum_ += static_cast<float>(1 << column);
  }
  __forceinline__ unsigned bits() const { return __float_as_uint(sum_) & ((1u << kMostColumns) - 1); }

 private:
  float sum_ = 8388608.0f;
};

}  // namespace tw_kernel
