#pragma once

#include "cuda/language.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/mma.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// The first matrix product on tensor cores. A warp owns kRowTiles x 16 rows of q and all columns; K and Q
// are read from shared memory with ldmatrix.
//
//   S[q][kv] = sum over d of Q[q][d] K[kv][d]
//
// A row in shared memory is counted in columns of 16 bits. A step of a product sums over 16 of them: over 8
// elements of float32, which ldmatrix hands out as it does pairs of 16 bits.

namespace tw_kernel {

// Padded with zeros to whole steps.
constexpr int kHeadPad = (kHeadDim * static_cast<int>(sizeof(QElement)) / 2 + 15) / 16 * 16;

// Where this lane's rows begin in a tile of kPad columns, for each kind of fragment.
template <int kPad>
TW_INLINE unsigned q_fragment(unsigned q_tile) {
  return q_tile + SharedTile<kPad>::offset(warp_row() + lane() % 16, lane() / 16);
}
template <int kPad>
TW_INLINE unsigned k_fragment(unsigned k_tile) {
  return k_tile + SharedTile<kPad>::offset(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
}
// The fragments of Q, of all kv tiles: in registers where there is room, else read anew for each.
template <int kPad>
class RowFragments {
 public:
  static constexpr int kSteps = kPad / 16;

  // Q has arrived where it is kept in registers.
  __forceinline__ explicit RowFragments(unsigned q_tile) : rows_(q_fragment<kPad>(q_tile)) {
    if (!kQInRegisters) return;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) load(step, kept_[step]);
  }

  __forceinline__ void read(int step, unsigned (&q)[kRowTiles][4]) const {
    if (!kQInRegisters) return load(step, q);
#pragma unroll
    for (int i = 0; i < kRowTiles * 4; ++i) q[i / 4][i % 4] = kept_[step][i / 4][i % 4];
  }

 private:
  __forceinline__ void load(int step, unsigned (&q)[kRowTiles][4]) const {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      load_matrices(SharedTile<kPad>::advance(rows_, step) + i * 16 * kPad * 2, q[i]);
    }
  }

  unsigned rows_;
  unsigned kept_[kSteps][kRowTiles][4];
};
using QFragments = RowFragments<kHeadPad>;

// Fragments: RowFragments, or another class that has read() and kSteps. draws: QuadDraws or NoDraws, drawn between
// the steps
template <typename Fragments, typename AnyDraws>
TW_INLINE void score_tile(const Fragments& q_fragments, unsigned k_tile, float (&s)[kRows][kColumns],
                          AnyDraws& draws) {
  constexpr int kPad = 16 * Fragments::kSteps;
  const unsigned k_rows = k_fragment<kPad>(k_tile);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] = 0.0f;
  }
#pragma unroll
  for (int step = 0; step < kPad / 16; ++step) {
    unsigned q[kRowTiles][4];
    q_fragments.read(step, q);
    const unsigned zero = draws.zero();
    draws.template draw<kPad / 16>(step, s[0][0]);
#pragma unroll
    for (int n = 0; n < kKvTile / 16; ++n) {
      unsigned k[4];
      load_matrices(SharedTile<kPad>::advance(k_rows, step) + zero + n * 16 * kPad * 2, k);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        float(&upper)[kColumns] = s[2 * i];
        float(&lower)[kColumns] = s[2 * i + 1];
        multiply_add<QElement>(upper[4 * n], upper[4 * n + 1], lower[4 * n], lower[4 * n + 1], q[i],
                               k[0], k[1]);
        multiply_add<QElement>(upper[4 * n + 2], upper[4 * n + 3], lower[4 * n + 2],
                               lower[4 * n + 3], q[i], k[2], k[3]);
      }
    }
  }
}

}  // namespace tw_kernel
