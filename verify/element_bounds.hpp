#pragma once

#include <cstddef>
#include <vector>

#include "judge.hpp"

namespace tilewright::verify {

// The bounds of a tensor whose elements are judged one by one, out or weights (judge.hpp).

/// Whether the reference, an infinite one too, reaches the greatest number of an 8-bit out.
bool is_clamped(double reference, DType out_dtype);

/// Whether an element counts in errors: its reference is finite in out's dtype, and not clamped.
bool counts(double reference, DType out_dtype);

/// One tensor of a result, and what it is judged by.
struct JudgedTensor {
  const Values& got;
  const Values& reference;
  const Values& naive;
  /// Of each row: judge.hpp's `own`, as a share of max |reference|, and BoundSizes::values. No
  /// elements: 0, and no limit.
  const std::vector<double>& shares;
  const std::vector<double>& limits;
  const Values& lost;   ///< BoundSizes::lost; no elements: 0
  const Values& large;  ///< Rule::large; no elements: no element is
};

/// Errors and bounds: the scalars as Verdict has them.
struct ElementErrors {
  Values bounds = {};     ///< of each element
  std::size_t worst = 0;  ///< the element with the greatest error, of those in error_rms
  double error_max = 0, bound_max = 0, error_rms = 0, bound_rms = 0;
  double naive_max = 0, naive_rms = 0;
};

ElementErrors measure(const JudgedTensor& tensor, const Rule& rule);

}  // namespace tilewright::verify
