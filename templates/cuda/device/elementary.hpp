// Fast elementary functions: one instruction of the special function unit and at most two around
// it. Errors as the PTX manual states them: ex2 2^-22 relative, lg2 2^-22 absolute near 1, tanh
// 2^-11 relative, numbers below 2^-126 count as 0.

namespace tw_math {

TW_INLINE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TW_INLINE float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TW_INLINE float tanh(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

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
