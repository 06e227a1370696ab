#pragma once

#include <cfenv>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tilewright::test {

/// Settings of a thread's floating-point arithmetic that a program may have when it calls the
/// library.
struct FloatMode {
  const char* name;
  int rounding = FE_TONEAREST;
  bool flushes = false;  ///< subnormal results and operands count as 0 (FTZ, DAZ)
  bool traps =
      false;  ///< invalid operations, divisions by zero, overflow, underflow end the process
};

inline const std::vector<FloatMode>& float_modes() {
  static const std::vector<FloatMode> modes = {
      {"downward", FE_DOWNWARD},
      {"upward", FE_UPWARD},
      {"toward zero", FE_TOWARDZERO},
      {"flush", FE_TONEAREST, true},
      {"traps", FE_TONEAREST, false, true},
      {"upward, flush, traps", FE_UPWARD, true, true},
  };
  return modes;
}

/// The calling thread's modes, masks and sticky flags.
struct FloatControl {
  std::uint32_t sse = 0;
  std::uint16_t x87 = 0;
  int flags = 0;
  friend bool operator==(const FloatControl&, const FloatControl&) = default;
};

inline FloatControl float_control() {
  FloatControl control;
#if defined(__x86_64__)
  control.sse = _mm_getcsr();
  __asm__ volatile("fnstcw %0" : "=m"(control.x87));
#endif
  control.flags = std::fetestexcept(FE_ALL_EXCEPT);
  return control;
}

/// While it lives, the calling thread has the mode, with no flag set.
class InFloatMode {
 public:
  explicit InFloatMode(const FloatMode& mode) {
    std::fegetenv(&before_);
    std::feclearexcept(FE_ALL_EXCEPT);
    std::fesetround(mode.rounding);
#if defined(__x86_64__)
    if (mode.flushes) _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
    if (mode.traps) feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
  }
  InFloatMode(const InFloatMode&) = delete;
  InFloatMode& operator=(const InFloatMode&) = delete;
  ~InFloatMode() {
    std::fesetenv(&before_);
  }

 private:
  std::fenv_t before_;
};

}  // namespace tilewright::test
