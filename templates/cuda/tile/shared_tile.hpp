#pragma once

// A tile of 16-bit elements in shared memory, [rows][kColumns], kColumns a multiple of 16.
//
// ldmatrix reads 8 rows at one chunk of 16 bytes at a time. Were rows simply laid one after the
// other, those chunks would share banks, so the chunks of a row are permuted by XOR with a number
// that depends on the row: any 8 rows from a multiple of 8 on then lie in 8 different groups of
// banks, whatever kColumns is.

namespace tw_kernel {

template <int kColumns>
struct SharedTile {
  static constexpr int kChunks = kColumns / 8;
  // Chunks are permuted among as many as the greatest power of two that divides a row, at most 8.
  static constexpr int kSpread = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;
  static_assert(kColumns % 16 == 0, "a row is a whole number of mma's steps");

  // Bytes from the tile's first, which is aligned to 128.
  static __forceinline__ unsigned offset(unsigned row, unsigned chunk) {
    return (row * kChunks + (chunk ^ (row / (8 / kSpread) % kSpread))) * 16;
  }

  // Rows this far apart are permuted alike.
  static constexpr int kPeriod = 8;
  static constexpr int kRowBytes = kColumns * 2;

  // From the address of (row, chunk), chunk 0 or 1, to that of (row, chunk + 2 * steps). For
  // constant `steps` it is one XOR at most; the sum goes into the instruction that uses the
  // address.
  static __forceinline__ unsigned advance(unsigned address, int steps) {
    const int chunks = 2 * steps;
    return (address ^ (chunks % kSpread * 16)) + chunks / kSpread * kSpread * 16;
  }
};

}  // namespace tw_kernel
