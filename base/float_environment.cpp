#include "base/float_environment.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tilewright {

#if defined(__x86_64__)

namespace {

constexpr std::uint32_t kSseFlags = 0x3fu;
constexpr std::uint32_t kSseDefault = 0x1f80u;  // all exceptions masked, nearest, subnormals kept
constexpr std::uint16_t kX87Default = 0x037fu;  // likewise, with 64 bits of mantissa

std::uint16_t x87_control() {
  std::uint16_t word;
  __asm__ volatile("fnstcw %0" : "=m"(word));
  return word;
}

void set_x87_control(std::uint16_t word) {
  __asm__ volatile("fldcw %0" : : "m"(word));
}

}  // namespace

DefaultFloatEnvironment::DefaultFloatEnvironment() noexcept
    : sse_(_mm_getcsr()), x87_(x87_control()) {
  if ((sse_ & ~kSseFlags) != kSseDefault) _mm_setcsr(kSseDefault);
  if (x87_ != kX87Default) set_x87_control(kX87Default);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() {
  if (x87_ != kX87Default) set_x87_control(x87_);
  if (_mm_getcsr() != sse_) _mm_setcsr(sse_);
}

#else

DefaultFloatEnvironment::DefaultFloatEnvironment() noexcept {
  std::fegetenv(&caller_);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() {
  std::fesetenv(&caller_);
}

#endif

}  // namespace tilewright
