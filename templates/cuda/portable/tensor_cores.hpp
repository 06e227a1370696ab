#pragma once

#include "cuda/language.hpp"
#include "cuda/portable/half_weights.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/mma.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// The matrix products on tensor cores, for 16-bit elements; S as score_products.hpp has it. V is read from
// shared memory with ldmatrix.
//
//   O[q][dv] += sum over kv of P[q][kv] V[kv][dv]

namespace tw_kernel {

using WeightElement = QElement;  // of P where it meets V

constexpr int kValuePad = (kValueDim + 15) / 16 * 16;  // padded with zeros to whole steps
constexpr int kOutColumns = kValuePad / 4;

// Two neighbouring columns from an even j on.
TW_INLINE int out_column_of(int j) {
  return column_of(j);
}

// Which columns of Q a step's operand has: a lane two neighbouring ones in each half.
TW_INLINE constexpr int q_pair_column(int step, int half, int quad) {
  return step * 16 + half * 8 + quad * 2;
}
// Whether a chunk of 8 columns, half a step, has 8 neighbours; else pairs of them.
constexpr bool kQInOrder = true;

constexpr int kQBytes = kQTile * kHeadPad * 2;
constexpr int kKBytes = kKvTile * kHeadPad * 2;
constexpr int kVBytes = kKvTile * kValuePad * 2;
constexpr int kPBytes = 0;

// Where this lane's rows begin in a tile of kPad columns.
template <int kPad>
TW_INLINE unsigned v_fragment(unsigned v_tile) {
  return v_tile + SharedTile<kPad>::offset(lane() % 16, lane() / 16);
}

// kPad: columns of a row of the tile.
template <int kPad = kValuePad>
TW_INLINE void value_tile(const Weights& weights, unsigned v_tile,
                          float (&out)[kRows][kPad / 4]) {
  const unsigned v_rows = v_fragment<kPad>(v_tile);
#pragma unroll
  for (int step = 0; step < kKvTile / 16; ++step) {
#pragma unroll
    for (int n = 0; n < kPad / 16; ++n) {
      unsigned v[4];
      load_matrices_transposed(SharedTile<kPad>::advance(v_rows, n) + step * 16 * kPad * 2, v);
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        const unsigned(&a)[4] = weights.fragment[step][i];
        float(&upper)[kPad / 4] = out[2 * i];
        float(&lower)[kPad / 4] = out[2 * i + 1];
        multiply_add<QElement>(upper[4 * n], upper[4 * n + 1], lower[4 * n], lower[4 * n + 1], a,
                               v[0], v[1]);
        multiply_add<QElement>(upper[4 * n + 2], upper[4 * n + 3], lower[4 * n + 2],
                               lower[4 * n + 3], a, v[2], v[3]);
      }
    }
  }
}

}  // namespace tw_kernel
