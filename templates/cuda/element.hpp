#pragma once

#include "cuda/float16.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"

// Numbers in memory, whatever their type.

namespace tw_kernel {

TW_INLINE float to_float(float x) {
  return x;
}

TW_INLINE float to_float(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

// A truth in memory: any byte but 0.
struct Bool {
  unsigned char byte;
};

// Integers stay integers.
TW_INLINE float to_number(float x) {
  return x;
}
TW_INLINE float to_number(Half x) {
  return to_float(x);
}
TW_INLINE float to_number(BFloat16 x) {
  return to_float(x);
}
TW_INLINE int to_number(int x) {
  return x;
}
TW_INLINE float to_number(double x) {
  return static_cast<float>(x);
}
TW_INLINE int to_number(signed char x) {
  return x;
}
TW_INLINE int to_number(unsigned char x) {
  return x;
}
TW_INLINE int to_number(short x) {
  return x;
}
TW_INLINE int to_number(unsigned short x) {
  return x;
}
TW_INLINE long long to_number(unsigned x) {
  return x;
}
TW_INLINE long long to_number(long long x) {
  return x;
}
TW_INLINE int to_number(Bool x) {
  return x.byte != 0;
}

// Global memory that no kernel writes while this one runs.
template <typename Element>
TW_INLINE Element load_read_only(const Element* from) {
  return __ldg(from);
}
TW_INLINE Half load_read_only(const Half* from) {
  return {__ldg(&from->bits)};
}
TW_INLINE BFloat16 load_read_only(const BFloat16* from) {
  return {__ldg(&from->bits)};
}
TW_INLINE Bool load_read_only(const Bool* from) {
  return {__ldg(&from->byte)};
}

TW_INLINE void from_float(float x, float* out) {
  *out = x;
}

// Two neighbouring numbers of a row.
TW_INLINE void store_pair(float low, float high, float* out) {
  *reinterpret_cast<float2*>(out) = {low, high};
}
template <typename Element>
TW_INLINE void store_pair(float low, float high, Element* out) {
  *reinterpret_cast<unsigned*>(out) = pack<Element>(low, high);
}

}  // namespace tw_kernel
