#pragma once

#include "cuda/float16.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/fragment.hpp"
#include "kernel/configuration.hpp"

// Which elements of S a thread has where tensor cores multiply: a warp owns kRowTiles x 16 rows of q and all
// columns.

namespace tw_kernel {

constexpr int kThreads = kWarps * 32;
constexpr bool kExactSoftmax = false;  // see softmax.hpp
constexpr int kWeightExponent = 0;  // likewise
// Significant bits of a weight where it meets V: of a 16-bit type, or of TF32.
constexpr int kWeightDigits = kDigits<QElement> < 24 ? kDigits<QElement> : 11;
static_assert(kQTile == kWarps * kRowTiles * 16, "a warp owns kRowTiles tiles of 16 rows");
static_assert(kKvTile % 16 == 0, "a kv tile is a whole number of steps");

// Of a thread: see fragment.hpp.
constexpr int kRows = 2 * kRowTiles;
constexpr int kColumns = kKvTile / 4;

TW_INLINE unsigned lane() {
  return thread_number<kThreads>() % 32;
}
TW_INLINE unsigned warp_row() {
  return thread_number<kThreads>() / 32 * (kRowTiles * 16);
}
// A thread's row i is row_of(0) + row_offset(i).
TW_INLINE constexpr int row_offset(int i) {
  return i / 2 * 16 + i % 2 * 8;
}
TW_INLINE int row_of(int i) {
  return static_cast<int>(warp_row() + lane() / 4) + row_offset(i);
}
TW_INLINE int column_of(int j) {
  return static_cast<int>(lane() % 4 * 2) + column_offset(j);
}

}  // namespace tw_kernel
