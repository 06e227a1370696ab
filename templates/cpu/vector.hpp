#pragma once

#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"

// Vectors of the CPU kernels. A lane is a row of q: everything along kv is element by element, so
// the online softmax needs no reduction across lanes.

namespace tw_kernel {

constexpr int kLanes = kVectorBytes / 4;  // rows of q in a vector

typedef float Vector __attribute__((vector_size(kVectorBytes)));
typedef int IntVector __attribute__((vector_size(kVectorBytes)));

constexpr float kInfinity = __builtin_inff();
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kLn2 = 0.693147180559945309f;

TW_INLINE Vector broadcast(float x) { return Vector{} + x; }

// A NaN in x is passed over: the greatest of the rest is what the softmax subtracts.
TW_INLINE Vector max_ignoring_nan(Vector greatest, Vector x) { return x > greatest ? x : greatest; }

// e^x for x <= 0. e^-inf is 0, NaN stays NaN, and results below 2^-125 are 0: a subnormal p would cost
// some processors hundreds of cycles in each of the products that it takes part in. docs/math.md says
// how exact it is.
TW_INLINE Vector exp_not_positive(Vector x) {
  // The low bits of shifted hold the biased exponent of 2^(n - 1), n = round(x * log2(e)). At
  // n = -126 it is 0, and so is the power that it stands for. The polynomial gives 2 * e^r.
  constexpr float kShift = 12582912.0f + 126.0f;
  const Vector lowest = broadcast(-87.34f);
  x = x < lowest ? lowest : x;
  const Vector shifted = x * kLog2E + kShift;
  const Vector r = x - (shifted - kShift) * kLn2;
  Vector p = r * (2 * 8.312480519e-3f) + 2 * 4.189055e-2f;
  p = p * r + 2 * 1.666711628e-1f;
  p = p * r + 2 * 4.999922883e-1f;
  p = p * r + 2.0f;
  p = p * r + 2.0f;
  return p * (Vector)((IntVector)shifted << 23);
}

}  // namespace tw_kernel
