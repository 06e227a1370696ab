// The functions of fast_math readings: our own where one vectorises, the C library's elsewhere.

TW_INLINE tw_real exp(tw_real x) { return tw_math::exp(x); }
TW_INLINE tw_real exp2(tw_real x) { return tw_math::exp2(x); }
TW_INLINE tw_real log(tw_real x) { return tw_math::log(x); }
TW_INLINE tw_real log2(tw_real x) { return tw_math::log2(x); }
TW_INLINE tw_real tanh(tw_real x) { return tw_math::tanh(x); }
TW_INLINE tw_real sin(tw_real x) { return tw_math::sin(x); }
TW_INLINE tw_real cos(tw_real x) { return tw_math::cos(x); }
TW_INLINE tw_real tan(tw_real x) { return tw_math::tan(x); }
TW_INLINE tw_real pow(tw_real x, tw_real y) { return __builtin_powf(x, y); }
