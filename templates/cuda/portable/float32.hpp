#pragma once

#include "cuda/language.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "kernel/configuration.hpp"

// The matrix products in float32, with the same interface as tensor_cores.hpp and as exact as a
// plain loop over floats: for dtype f32, and for mixtures of dtypes, whose elements become floats
// on their way to shared memory. Half a warp shares kRows rows of q; its lanes share out the
// columns.

namespace tw_kernel {

constexpr int kThreads = kWarps * 32;
constexpr bool kExactSoftmax = true;  // see softmax.hpp
constexpr int kWeightExponent = 0;  // likewise
constexpr int kWeightDigits = 24;     // significant bits of a weight where it meets V
constexpr int kRows = 4;
constexpr int kColumns = kKvTile / 16;
constexpr int kValuePad = (kValueDim + 63) / 64 * 64;
constexpr int kOutColumns = kValuePad / 16;
static_assert(kQTile == kWarps * 2 * kRows, "half a warp owns kRows rows");
static_assert(kKvTile % 16 == 0, "16 lanes share a row");

constexpr int kLanesSharingRow = 16;

TW_INLINE int lane() {
  return threadIdx.x % kLanesSharingRow;
}
// A thread's number among the lanes that share its rows.
TW_INLINE int lane_of_row() {
  return lane();
}
// A thread's row i is row_of(0) + row_offset(i), and likewise for columns.
TW_INLINE constexpr int row_offset(int i) {
  return i;
}
TW_INLINE constexpr int column_offset(int j) {
  return j * 16;
}
TW_INLINE int row_of(int i) {
  return threadIdx.x / 16 * kRows + row_offset(i);
}
TW_INLINE int column_of(int j) {
  return lane() + column_offset(j);
}
// Four neighbouring columns from each multiple of four on.
TW_INLINE int out_column_of(int j) {
  return j / 4 * 64 + lane() * 4 + j % 4;
}

TW_INLINE float reduce_row_max(float x) {
#pragma unroll
  for (int i = 1; i < 16; i *= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
TW_INLINE float reduce_row_sum(float x) {
#pragma unroll
  for (int i = 1; i < 16; i *= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

// Floats between rows of shared memory. Four more than a row of Q or K holds, so that 8 lanes
// interpretation 16 bytes of 8 rows meet in no bank.
constexpr int kHeadPitch = kHeadDim + 4;
constexpr int kPPitch = kKvTile + 4;
constexpr int kQBytes = kQTile * kHeadPitch * 4;
constexpr int kKBytes = kKvTile * kHeadPitch * 4;
constexpr int kVBytes = kKvTile * kValuePad * 4;
constexpr int kPBytes = kQTile * kPPitch * 4;

// Rows of kDim columns, kPitch floats apart.
template <int kDim, int kPitch>
class RowFragments {
 public:
  __forceinline__ explicit RowFragments(unsigned q_tile) : rows_(q_tile + row_of(0) * kPitch * 4) {}
  // Columns d to d + 3 of row i.
  __forceinline__ float4 read(int i, int d) const {
    return load_shared_4(rows_ + (i * kPitch + d) * 4);
  }

 private:
  unsigned rows_;
};
using QFragments = RowFragments<kHeadDim, kHeadPitch>;

template <int kDim, int kPitch, typename AnyDraws>
TW_INLINE void score_tile(const RowFragments<kDim, kPitch>& q_fragments, unsigned k_tile,
                          float (&s)[kRows][kColumns], AnyDraws& draws) {
  draws.draw();
  const unsigned k_rows = k_tile + column_of(0) * kPitch * 4;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] = 0.0f;
  }
#pragma unroll 2
  for (int d = 0; d < kDim; d += 4) {
    float4 q[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) q[i] = q_fragments.read(i, d);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const float4 k = load_shared_4(k_rows + (j * 16 * kPitch + d) * 4);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        s[i][j] += q[i].x * k.x;
        s[i][j] += q[i].y * k.y;
        s[i][j] += q[i].z * k.z;
        s[i][j] += q[i].w * k.w;
      }
    }
  }
}

template <int kColumnsOfOut>
TW_INLINE void add_value_row(float p, const float4 (&v)[kColumnsOfOut / 4],
                             float (&sum)[kColumnsOfOut]) {
#pragma unroll
  for (int n = 0; n < kColumnsOfOut / 4; ++n) {
    sum[4 * n] += p * v[n].x;
    sum[4 * n + 1] += p * v[n].y;
    sum[4 * n + 2] += p * v[n].z;
    sum[4 * n + 3] += p * v[n].w;
  }
}

// P goes through shared memory; its rows are written and read by the same warp.
struct Weights {
  unsigned rows;  // this thread's rows of P
};

TW_INLINE Weights make_weights(unsigned p_tile, const float (&p)[kRows][kColumns]) {
  const unsigned p_rows = p_tile + row_of(0) * kPPitch * 4;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      store_shared(p_rows + (i * kPPitch + column_of(j)) * 4, p[i][j]);
    }
  }
  __syncwarp();  // the rows of P are complete
  return {p_rows};
}

// A tile is summed on its own before it joins `out`: thousands of small terms added one by one to a
// large sum would each be rounded at its size.
// kPad: columns of a row of the tile, and kPitch floats from one row to the next.
template <int kPad = kValuePad, int kPitch = kPad>
TW_INLINE void value_tile(const Weights& weights, unsigned v_tile,
                          float (&out)[kRows][kPad / 16]) {
  constexpr int kColumnsOfOut = kPad / 16;
  const unsigned v_rows = v_tile + lane() * 16;
  float tile[kRows][kColumnsOfOut];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int n = 0; n < kColumnsOfOut; ++n) tile[i][n] = 0.0f;
  }
#pragma unroll 1
  for (int kv = 0; kv < kKvTile; kv += 4) {
    float4 weight[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      weight[i] = load_shared_4(weights.rows + (i * kPPitch + kv) * 4);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float4 v[kColumnsOfOut / 4];
#pragma unroll
      for (int n = 0; n < kColumnsOfOut / 4; ++n) {
        v[n] = load_shared_4(v_rows + ((kv + k) * kPitch + n * 64) * 4);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float4 w = weight[i];
        add_value_row<kColumnsOfOut>(k == 0 ? w.x : k == 1 ? w.y : k == 2 ? w.z : w.w, v, tile[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int n = 0; n < kColumnsOfOut; ++n) out[i][n] += tile[i][n];
  }
}

}  // namespace tw_kernel
