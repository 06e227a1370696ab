#pragma once

#include "cuda/language.hpp"

// In place of templates/cuda/ptx/shared_memory.hpp.

namespace tw_kernel {

TW_INLINE float4 load_shared_4(unsigned from) {
  float4 x;
  std::memcpy(&x, emulated::at_shared(from), sizeof x);
  return x;
}
TW_INLINE float2 load_shared_2(unsigned from) {
  float2 x;
  std::memcpy(&x, emulated::at_shared(from), sizeof x);
  return x;
}
TW_INLINE float load_shared(unsigned from) {
  float x;
  std::memcpy(&x, emulated::at_shared(from), sizeof x);
  return x;
}
TW_INLINE void store_shared(unsigned to, float x) {
  std::memcpy(emulated::at_shared(to), &x, sizeof x);
}
TW_INLINE void store_shared_16(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  const unsigned x[4] = {a, b, c, d};
  std::memcpy(emulated::at_shared(to), x, sizeof x);
}

}  // namespace tw_kernel
