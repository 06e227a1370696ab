// Fast elementary functions: at most two instructions around one of the special function unit.
//
// Needs: special_functions.hpp.

namespace tw_math {

TW_INLINE float exp(float x) {
  return exp2(x * 1.44269504088896341f);
}
TW_INLINE float log(float x) {
  return log2(x) * 0.693147180559945309f;
}
// CUDA's own: outside [-pi, pi] the error of the instructions for sin and cos grows without bound, and
// there are none for the others.
TW_INLINE float sin(float x) {
  return ::sinf(x);
}
TW_INLINE float cos(float x) {
  return ::cosf(x);
}
TW_INLINE float tan(float x) {
  return ::tanf(x);
}
TW_INLINE float erf(float x) {
  return ::erff(x);
}
TW_INLINE float erfc(float x) {
  return ::erfcf(x);
}
TW_INLINE float log1p(float x) {
  return ::log1pf(x);
}
TW_INLINE float expm1(float x) {
  return ::expm1f(x);
}

}  // namespace tw_math
