#pragma once

#include "cuda/language.hpp"
#include "cuda/snippet/buffer.hpp"
#include "kernel/configuration.hpp"

// q_idx and kv_idx of an element for a score_mod that takes their difference. A conversion of an
// integer takes as long as two multiplications, and `slopes[h] * (kv_idx - q_idx)` would need one
// for each score. So an index is kept as a base that all of a thread's rows (columns) share and a
// constant, and of the base also as a float: its distance from the tile's first column. The
// difference of two distances is what converting the difference of the integers gives, as a
// column's distance is short and a row's exact up to 2^24; beyond that both round the same number,
// this one up to three times.
//
// A difference adds the bases before the constants: then equal differences of different elements,
// of which a tile has many, are equal to the compiler too. It computes with them once, and reads a
// table once for all of them.
//
// Everywhere else an index is an int.

namespace tw_snippet {

struct tw_RowIndex {
  int base;
  int offset;
  float distance;  // of the base
  __forceinline__ operator int() const { return base + offset; }
};

struct tw_ColumnIndex {
  int base;
  int offset;
  float distance;
  __forceinline__ operator int() const { return base + offset; }
};

// kv_idx - q_idx or q_idx - kv_idx: a float where the other operand is one, else an int.
struct tw_IndexDifference {
  int base;
  int constant;
  float distance;  // of the bases
  float offset;    // the constant
  __forceinline__ operator int() const { return base + constant; }
  __forceinline__ explicit operator float() const { return real(); }
  __forceinline__ float real() const { return distance + offset; }
};

TW_INLINE tw_IndexDifference operator-(tw_ColumnIndex kv_idx, tw_RowIndex q_idx) {
  return {kv_idx.base - q_idx.base, kv_idx.offset - q_idx.offset,
          kv_idx.distance - q_idx.distance, static_cast<float>(kv_idx.offset - q_idx.offset)};
}
TW_INLINE tw_IndexDifference operator-(tw_RowIndex q_idx, tw_ColumnIndex kv_idx) {
  return {q_idx.base - kv_idx.base, q_idx.offset - kv_idx.offset,
          q_idx.distance - kv_idx.distance, static_cast<float>(q_idx.offset - kv_idx.offset)};
}
TW_INLINE tw_IndexDifference operator-(tw_IndexDifference x) {
  return {-x.base, -x.constant, -x.distance, -x.offset};
}
TW_INLINE tw_IndexDifference abs(tw_IndexDifference x) {
  const int whole = x;
  return {whole < 0 ? -whole : whole, 0, ::fabsf(x.real()), 0.0f};
}

// With an int the constant stays apart.
template <typename T>
constexpr bool tw_is_int = false;
template <>
constexpr bool tw_is_int<int> = true;

template <typename T>
TW_INLINE tw_IndexSum operator+(tw_IndexDifference a, T b) requires(tw_is_int<T>) {
  return {a.base + b, a.constant};
}
template <typename T>
TW_INLINE tw_IndexSum operator+(T a, tw_IndexDifference b) requires(tw_is_int<T>) {
  return {a + b.base, b.constant};
}
template <typename T>
TW_INLINE tw_IndexSum operator-(tw_IndexDifference a, T b) requires(tw_is_int<T>) {
  return {a.base - b, a.constant};
}
template <typename T>
TW_INLINE tw_IndexSum operator+(tw_IndexSum a, T b) requires(tw_is_int<T>) {
  return {a.base + b, a.constant};
}
template <typename T>
TW_INLINE tw_IndexSum operator-(tw_IndexSum a, T b) requires(tw_is_int<T>) {
  return {a.base - b, a.constant};
}

TW_INLINE tw_IndexSum tw_sum(tw_RowIndex i) { return {i.base, i.offset}; }
TW_INLINE tw_IndexSum tw_sum(tw_ColumnIndex i) { return {i.base, i.offset}; }
TW_INLINE tw_IndexSum tw_sum(tw_IndexDifference i) { return {i.base, i.constant}; }
TW_INLINE tw_IndexSum tw_sum(tw_IndexSum i) { return i; }

template <typename T>
constexpr bool tw_is_real = false;
template <>
constexpr bool tw_is_real<float> = true;
template <>
constexpr bool tw_is_real<tw_Loaded<float>> = true;

#define TW_WITH_REAL(op)                                                           \
  template <typename T>                                                            \
  TW_INLINE float operator op(tw_IndexDifference a, T b) requires(tw_is_real<T>) { \
    return a.real() op static_cast<float>(b);                                       \
  }                                                                                \
  template <typename T>                                                            \
  TW_INLINE float operator op(T a, tw_IndexDifference b) requires(tw_is_real<T>) { \
    return static_cast<float>(a) op b.real();                                       \
  }
TW_WITH_REAL(+)
TW_WITH_REAL(-)
TW_WITH_REAL(/)
#undef TW_WITH_REAL

// One multiply-add for each difference: the product of the bases' difference is alike for all of
// them. It is rounded first, so this is off by an ulp of that product, which is
// negligible in a score of 16-bit tensors.
template <typename T>
TW_INLINE float operator*(tw_IndexDifference a, T b) requires(tw_is_real<T>) {
  const float factor = b;
  if (tw_kernel::kExactScores) return a.real() * factor;
  return fma(a.offset, factor, a.distance * factor);
}
template <typename T>
TW_INLINE float operator*(T a, tw_IndexDifference b) requires(tw_is_real<T>) {
  return b * a;
}

}  // namespace tw_snippet
