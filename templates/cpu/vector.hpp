// Vectors of the CPU kernels. A lane is a row of q: everything along kv is element by element, so
// the online softmax needs no reduction across lanes.
//
// Needs: kVectorBytes.

#define TW_INLINE static inline __attribute__((always_inline))
#define TW_NOINLINE static __attribute__((noinline))

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

// 2^x for x <= 0. 2^-inf is 0, results below 2^-126 are 0, NaN stays NaN. Relative error 1.6e-7.
TW_INLINE Vector exp2_not_positive(Vector x) {
  // The low bits of x + kShift hold the biased exponent of 2^round(x). At x = -127 it is 0, and so
  // is the power that it stands for.
  constexpr float kShift = 12582912.0f + 127.0f;
  const Vector lowest = broadcast(-127.0f);
  x = x < lowest ? lowest : x;
  const Vector shifted = x + kShift;
  const Vector f = x - (shifted - kShift);
  Vector p = f * 1.32647343e-3f + 9.671512323e-3f;
  p = p * f + 5.550733722e-2f;
  p = p * f + 2.40222421e-1f;
  p = p * f + 6.931469776e-1f;
  p = p * f + 1.0f;
  return p * (Vector)((IntVector)shifted << 23);
}

}  // namespace tw_kernel
