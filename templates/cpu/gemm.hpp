#pragma once

#include "cpu/inline.hpp"
#include "cpu/vector.hpp"
#include "kernel/configuration.hpp"

// The two matrix products of a tile. Both broadcast a number of K or V to vectors of q rows, so K and
// V are read where they lie and only q is transposed.
//
//   S[kv][q]  = scale * sum over d of K[kv][d] * Q[d][q]
//   O[dv][q]  = alpha[q] * O[dv][q] + sum over kv of V[kv][dv] * P[kv][q]
//
// kDim is the size of a row of K or V. The backward pass has the same products with other operands
// (backward.hpp). q rows lie in chunks of kLanes. A block of kRows x kGroup vectors is kept in registers.

namespace tw_kernel {

static_assert(kHeadDim % 8 == 0 && kValueDim % 8 == 0 && kKvTile % 8 == 0 && 8 % kRows == 0,
              "blocks of kRows must tile head dims and kv tiles");

// rows: kRows pointers to rows of K; q: [kWidth][kDim]; s: [kWidth][kKvTile]
template <int kDim, int kWidth>
TW_INLINE void multiply_scores(const float* const* rows, const Vector* __restrict q,
                               Vector* __restrict s, float scale) {
  Vector sum[kRows][kWidth] = {};
  for (int d = 0; d < kDim; ++d) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int w = 0; w < kWidth; ++w) sum[r][w] += rows[r][d] * q[w * kDim + d];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int w = 0; w < kWidth; ++w) s[w * kKvTile + r] = sum[r][w] * scale;
  }
}

// v: [count] rows, kRows columns of each; p: [kWidth][kKvTile]; o: [kWidth][kDim]
template <int kDim, int kWidth>
TW_INLINE void accumulate_values(const float* v, long long v_stride, int count,
                                 const Vector* __restrict p, Vector* __restrict o,
                                 const Vector* alpha) {
  Vector sum[kRows][kWidth] = {};
  for (int kv = 0; kv < count; ++kv) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int w = 0; w < kWidth; ++w) sum[r][w] += v[r] * p[w * kKvTile + kv];
    }
    v += v_stride;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int w = 0; w < kWidth; ++w) {
      o[w * kDim + r] = o[w * kDim + r] * alpha[w] + sum[r][w];
    }
  }
}

// Groups of kGroup chunks, and the chunks that are left over one at a time: few rows of q (decoding)
// cost few vectors.
template <int kDim>
TW_NOINLINE void score_tile(const float* k, long long k_stride, int count, int chunks,
                            const Vector* q, Vector* s, float scale) {
  for (int kv = 0; kv < count; kv += kRows) {
    // Past the last row the last row is read again, so every read stays inside kv_len.
    const float* rows[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) rows[r] = k + (kv + r < count ? kv + r : count - 1) * k_stride;
    int chunk = 0;
    for (; chunk + kGroup <= chunks; chunk += kGroup) {
      multiply_scores<kDim, kGroup>(rows, q + chunk * kDim, s + chunk * kKvTile + kv, scale);
    }
    for (; kGroup > 1 && chunk < chunks; ++chunk) {
      multiply_scores<kDim, 1>(rows, q + chunk * kDim, s + chunk * kKvTile + kv, scale);
    }
  }
}

template <int kDim>
TW_NOINLINE void value_tile(const float* v, long long v_stride, int count, int chunks,
                            const Vector* p, Vector* o, const Vector* alpha) {
  for (int d = 0; d < kDim; d += kRows) {
    int chunk = 0;
    for (; chunk + kGroup <= chunks; chunk += kGroup) {
      accumulate_values<kDim, kGroup>(v + d, v_stride, count, p + chunk * kKvTile,
                                o + chunk * kDim + d, alpha + chunk);
    }
    for (; kGroup > 1 && chunk < chunks; ++chunk) {
      accumulate_values<kDim, 1>(v + d, v_stride, count, p + chunk * kKvTile, o + chunk * kDim + d,
                           alpha + chunk);
    }
  }
}

}  // namespace tw_kernel
