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
TW_INLINE void load_shared_16(unsigned from, unsigned (&words)[4]) {
  if (from % 16 != 0) emulated_core->fail("ld.shared.v4: an address is no multiple of 16");
  std::memcpy(words, emulated::at_shared(from), sizeof words);
}
TW_INLINE void store_shared_16(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  const unsigned x[4] = {a, b, c, d};
  std::memcpy(emulated::at_shared(to), x, sizeof x);
  for (unsigned i = 0; i < 4; ++i) emulated::mark_unfenced(to + 4 * i);
}

}  // namespace tw_kernel
