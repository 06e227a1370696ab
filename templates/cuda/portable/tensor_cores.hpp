#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/mma.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/fragment.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// The matrix products on tensor cores, for 16-bit elements. A warp owns kRowTiles x 16 rows of q
// and all columns; K, V and Q are read from shared memory with ldmatrix, P goes from the scores'
// registers straight into the second product.
//
//   S[q][kv] = sum over d of Q[q][d] K[kv][d]        O[q][dv] += sum over kv of P[q][kv] V[kv][dv]

namespace tw_kernel {

constexpr int kThreads = kWarps * 32;
constexpr bool kExactSoftmax = false;  // see softmax.hpp
constexpr int kHeadPad = (kHeadDim + 15) / 16 * 16;  // padded with zeros to whole steps
constexpr int kValuePad = (kValueDim + 15) / 16 * 16;
static_assert(kQTile == kWarps * kRowTiles * 16, "a warp owns kRowTiles tiles of 16 rows");
static_assert(kKvTile % 16 == 0, "a kv tile is a whole number of steps");

// Of a thread: see fragment.hpp.
constexpr int kRows = 2 * kRowTiles;
constexpr int kColumns = kKvTile / 4;
constexpr int kOutColumns = kValuePad / 4;

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
// Two neighbouring columns from an even j on.
TW_INLINE int out_column_of(int j) {
  return column_of(j);
}

constexpr int kQBytes = kQTile * kHeadPad * 2;
constexpr int kKBytes = kKvTile * kHeadPad * 2;
constexpr int kVBytes = kKvTile * kValuePad * 2;
constexpr int kPBytes = 0;

// Where this lane's rows begin in a tile of kPad columns, for each kind of fragment.
template <int kPad>
TW_INLINE unsigned q_fragment(unsigned q_tile) {
  return q_tile + SharedTile<kPad>::offset(warp_row() + lane() % 16, lane() / 16);
}
template <int kPad>
TW_INLINE unsigned k_fragment(unsigned k_tile) {
  return k_tile + SharedTile<kPad>::offset(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
}
template <int kPad>
TW_INLINE unsigned v_fragment(unsigned v_tile) {
  return v_tile + SharedTile<kPad>::offset(lane() % 16, lane() / 16);
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

// Fragments: RowFragments, or another class that has read() and kSteps.
template <typename Fragments>
TW_INLINE void score_tile(const Fragments& q_fragments, unsigned k_tile,
                          float (&s)[kRows][kColumns]) {
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
#pragma unroll
    for (int n = 0; n < kKvTile / 16; ++n) {
      unsigned k[4];
      load_matrices(SharedTile<kPad>::advance(k_rows, step) + n * 16 * kPad * 2, k);
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

// P as the first operand of the second product: a score's accumulators are where that operand's
// elements must be, so nothing moves between lanes.
struct Weights {
  unsigned fragment[kKvTile / 16][kRowTiles][4];
};

TW_INLINE Weights make_weights(unsigned, const float (&p)[kRows][kColumns]) {
  Weights weights;
#pragma unroll
  for (int step = 0; step < kKvTile / 16; ++step) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const float(&upper)[kColumns] = p[2 * i];
      const float(&lower)[kColumns] = p[2 * i + 1];
      unsigned(&a)[4] = weights.fragment[step][i];
      a[0] = pack<QElement>(upper[4 * step], upper[4 * step + 1]);
      a[1] = pack<QElement>(lower[4 * step], lower[4 * step + 1]);
      a[2] = pack<QElement>(upper[4 * step + 2], upper[4 * step + 3]);
      a[3] = pack<QElement>(lower[4 * step + 2], lower[4 * step + 3]);
    }
  }
  return weights;
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
