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
// Outside [-pi, pi] the error of the instructions grows without bound, so these stay exact there.
TW_INLINE float sin(float x) {
  return ::sinf(x);
}
TW_INLINE float cos(float x) {
  return ::cosf(x);
}
TW_INLINE float tan(float x) {
  return ::tanf(x);
}

}  // namespace tw_math
