#pragma once

#include <cfenv>
#include <cstdint>

namespace tilewright {

/// While it lives, the calling thread computes as IEEE 754 has it by default: results are rounded
/// to nearest, subnormal numbers are kept, and exceptions do not trap. Its destructor restores the
/// thread's modes, masks and sticky flags, so what is computed meanwhile leaves no trace in them.
///
/// Kernels and the library's own arithmetic rely on these defaults. Each public function that
/// computes with floating-point numbers holds a guard, and ThreadPool holds one in every thread
/// that runs a loop's bodies. A nested guard costs two reads of control registers, an outer one
/// that finds other settings some 20 ns.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() noexcept;
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
  ~DefaultFloatEnvironment();

 private:
#if defined(__x86_64__)
  std::uint32_t sse_ = 0;  // MXCSR: modes, masks and flags
  // Control word, which strtod asks for the rounding direction. The library has no x87 arithmetic,
  // so the flags of its status word stay as they are.
  std::uint16_t x87_ = 0;
#else
  std::fenv_t caller_;
#endif
};

}  // namespace tilewright
