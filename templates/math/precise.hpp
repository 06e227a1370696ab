// The functions of precise readings: the C library's, in the precision of the score.

#define TW_PRECISE(name)                                                               \
  TW_INLINE tw_real name(tw_real x) {                                                  \
    return sizeof(tw_real) == sizeof(float) ? __builtin_##name##f(static_cast<float>(x)) \
                                            : __builtin_##name(x);                     \
  }
TW_PRECISE(exp)
TW_PRECISE(exp2)
TW_PRECISE(log)
TW_PRECISE(log2)
TW_PRECISE(tanh)
TW_PRECISE(sin)
TW_PRECISE(cos)
TW_PRECISE(tan)
#undef TW_PRECISE

TW_INLINE tw_real pow(tw_real x, tw_real y) {
  return sizeof(tw_real) == sizeof(float)
             ? __builtin_powf(static_cast<float>(x), static_cast<float>(y))
             : __builtin_pow(x, y);
}
