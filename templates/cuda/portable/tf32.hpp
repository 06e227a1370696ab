#pragma once

#include "cuda/language.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/mma.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"

// The matrix products in TF32, with the same interface as tensor_cores.hpp: Q, K, V (load_tf32.hpp) and P are
// float32 numbers that are rounded to 11 significant bits. The tensor cores sum in float32.
//
//   O[q][dv] += sum over kv of P[q][kv] V[kv][dv]
//
// A step sums over 8 rows of V. Its first operand has column l % 4 and the fourth after it of P in a lane,
// where the accumulators of S have columns 2 (l % 4) and the next. A sum may have any order, so the rows of V
// are permuted alike, and P stays in its registers.

namespace tw_kernel {

constexpr int kValuePad = kValueDim;  // a multiple of 8, a step's columns of O
constexpr int kOutColumns = kValuePad / 4;

// Two neighbouring columns from an even j on.
TW_INLINE int out_column_of(int j) {
  return column_of(j);
}

constexpr int kQBytes = kQTile * kHeadPad * 2;
constexpr int kKBytes = kKvTile * kHeadPad * 2;
constexpr int kVBytes = kKvTile * kValuePad * 4;
constexpr int kPBytes = 0;

struct Weights {
  unsigned fragment[kKvTile / 8][kRowTiles][4];
};

TW_INLINE Weights make_weights(unsigned, const float (&p)[kRows][kColumns]) {
  Weights weights;
#pragma unroll
  for (int step = 0; step < kKvTile / 8; ++step) {
#pragma unroll
    for (int i = 0; i < kRowTiles; ++i) {
      const float(&upper)[kColumns] = p[2 * i];
      const float(&lower)[kColumns] = p[2 * i + 1];
      unsigned(&a)[4] = weights.fragment[step][i];
      a[0] = to_tf32(upper[2 * step]);
      a[1] = to_tf32(lower[2 * step]);
      a[2] = to_tf32(upper[2 * step + 1]);
      a[3] = to_tf32(lower[2 * step + 1]);
    }
  }
  return weights;
}

using FloatValueTile = SharedTile<2 * kValuePad>;  // [kKvTile][kValuePad], of float32

// This lane's element of V in rows 0 to 7 and columns 0 to 7: column l / 4 of row 2 (l % 4), or of the next
// row.
TW_INLINE unsigned v_element(unsigned v_tile, unsigned next) {
  return v_tile + FloatValueTile::offset(lane() % 4 * 2 + next, lane() / 16) + lane() / 4 % 4 * 4;
}

TW_INLINE void value_tile(const Weights& weights, unsigned v_tile,
                          float (&out)[kRows][kOutColumns]) {
  const unsigned even = v_element(v_tile, 0), odd = v_element(v_tile, 1);
#pragma unroll
  for (int step = 0; step < kKvTile / 8; ++step) {
    const int rows = step * 8 * FloatValueTile::kRowBytes;
#pragma unroll
    for (int n = 0; n < kValuePad / 8; ++n) {
      const unsigned b0 = __float_as_uint(load_shared(FloatValueTile::advance(even, n) + rows));
      const unsigned b1 = __float_as_uint(load_shared(FloatValueTile::advance(odd, n) + rows));
#pragma unroll
      for (int i = 0; i < kRowTiles; ++i) {
        float(&upper)[kOutColumns] = out[2 * i];
        float(&lower)[kOutColumns] = out[2 * i + 1];
        multiply_add<float>(upper[2 * n], upper[2 * n + 1], lower[2 * n], lower[2 * n + 1],
                            weights.fragment[step][i], b0, b1);
      }
    }
  }
}

}  // namespace tw_kernel
