// In place of templates/cuda/device/elementary.hpp. What the special function unit computes is less
// exact than this; numbers below 2^-126 count as 0 there.

namespace tw_math {

TW_INLINE float flush(float x) {
  return std::fabs(x) < 0x1p-126f ? 0.0f * x : x;
}
TW_INLINE float exp2(float x) {
  return flush(std::exp2(flush(x)));
}
TW_INLINE float log2(float x) {
  return std::log2(flush(x));
}
TW_INLINE float tanh(float x) {
  return std::tanh(x);
}
TW_INLINE float exp(float x) {
  return exp2(x * 1.44269504088896341f);
}
TW_INLINE float log(float x) {
  return log2(x) * 0.693147180559945309f;
}
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
