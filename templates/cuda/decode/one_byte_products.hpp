#pragma once

#include "cuda/float16.hpp"
#include "cuda/language.hpp"
#include "cuda/one_byte.hpp"
#include "cuda/portable/half_weights.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/ptx/halves.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/mma.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"
#include "snippet/scales.hpp"

// The matrix products of portable/tensor_cores.hpp over tiles of K and V whose elements have one byte, which
// become 16-bit ones on the way from shared memory to the tensor cores: K those of Q, V those of P.
//
// ldmatrix takes two of them for one element of 16 bits. Of K a lane so gets four neighbouring columns of a
// row, where a step's operand has two and eight further on two more: the sum over columns may have any order,
// so Q's columns are permuted alike (q_pair_column). Of V, transposed, a lane gets two neighbouring columns of
// two rows. Put together by columns they are operands for the even and for the odd columns, and a lane's four
// columns of O are neighbours.

namespace tw_kernel {

constexpr int kHeadPad = (kHeadDim + 31) / 32 * 32;  // padded with zeros to whole pairs of steps
constexpr int kValuePad = (kValueDim + 31) / 32 * 32;
constexpr int kOutColumns = kValuePad / 4;

TW_INLINE int out_column_of(int j) {
  return j / 4 * 16 + static_cast<int>(lane() % 4 * 4) + j % 4;
}

// The type in which P meets V. Numbers of one byte are exact in f16, which they become in one instruction or
// two, and bf16 takes three more. A scale of each column is part of P and may take it out of f16's range.
template <bool kInHalf>
struct TypeOfWeights {
  using Type = QElement;
};
template <>
struct TypeOfWeights<true> {
  using Type = Half;
};
using WeightElement = TypeOfWeights<!kScalesWeights>::Type;

TW_INLINE Weights make_weights(unsigned p_tile, const float (&p)[kRows][kColumns]) {
  return make_weights<WeightElement>(p_tile, p);
}

TW_INLINE constexpr int q_pair_column(int step, int half, int quad) {
  return step * 16 + half * 2 + quad * 4;
}
constexpr bool kQInOrder = false;

constexpr int kQBytes = kQTile * kHeadPad * 2;
constexpr int kKBytes = kKvTile * kHeadPad;
constexpr int kVBytes = kKvTile * kValuePad;
constexpr int kPBytes = 0;

// A tile of K or V, [rows][kPad] bytes, by its elements of 16 bits.
template <int kPad>
using BytesTile = SharedTile<kPad / 2>;

// As those of portable/tensor_cores.hpp.
template <int kPad>
TW_INLINE unsigned q_fragment(unsigned q_tile) {
  return q_tile + SharedTile<kPad>::offset(warp_row() + lane() % 16, lane() / 16);
}
TW_INLINE unsigned k_fragment(unsigned k_tile) {
  return k_tile + BytesTile<kHeadPad>::offset(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2);
}
TW_INLINE unsigned v_fragment(unsigned v_tile) {
  return v_tile + BytesTile<kValuePad>::offset(lane() % 16, lane() / 16);
}

// Decode kernels have no dropout, so nothing is drawn.
template <typename Fragments, typename AnyDraws>
TW_INLINE void score_tile(const Fragments& q_fragments, unsigned k_tile, float (&s)[kRows][kColumns],
                          AnyDraws&) {
  const unsigned k_rows = k_fragment(k_tile);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] = 0.0f;
  }
#pragma unroll
  for (int two = 0; two < kHeadPad / 32; ++two) {
    unsigned q[2][kRowTiles][4];
    q_fragments.read(2 * two, q[0]);
    q_fragments.read(2 * two + 1, q[1]);
#pragma unroll
    for (int n = 0; n < kKvTile / 16; ++n) {
      unsigned k[4];  // columns of the first step and of the second, of the rows' first half; of the second
      load_matrices(BytesTile<kHeadPad>::advance(k_rows, two) + n * 16 * kHeadPad, k);
#pragma unroll
      for (int step = 0; step < 2; ++step) {
        const FourHalves first = widen<QElement, KvElement>(k[step]);
        const FourHalves second = widen<QElement, KvElement>(k[2 + step]);
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          float(&upper)[kColumns] = s[2 * i];
          float(&lower)[kColumns] = s[2 * i + 1];
          multiply_add<QElement>(upper[4 * n], upper[4 * n + 1], lower[4 * n], lower[4 * n + 1],
                                 q[step][i], first.low, first.high);
          multiply_add<QElement>(upper[4 * n + 2], upper[4 * n + 3], lower[4 * n + 2],
                                 lower[4 * n + 3], q[step][i], second.low, second.high);
        }
      }
    }
  }
}

TW_INLINE void value_tile(const Weights& weights, unsigned v_tile,
                          float (&out)[kRows][kOutColumns]) {
  const unsigned v_rows = v_fragment(v_tile);
#pragma unroll
  for (int step = 0; step < kKvTile / 16; ++step) {
#pragma unroll
    for (int two = 0; two < kValuePad / 32; ++two) {
      unsigned v[4];  // rows of the step's first half and of its second, of 16 columns; of the next 16
      load_matrices_transposed(
          BytesTile<kValuePad>::advance(v_rows, two) + step * 16 * kValuePad, v);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        // Rows r, r + 1 of an even column, then of the odd one after it.
        const FourHalves first = widen<WeightElement, KvElement>(__byte_perm(v[2 * n], 0, 0x3120));
        const FourHalves second = widen<WeightElement, KvElement>(__byte_perm(v[2 * n + 1], 0, 0x3120));
        const int j = 4 * (2 * two + n);
#pragma unroll
        for (int i = 0; i < kRowTiles; ++i) {
          const unsigned(&a)[4] = weights.fragment[step][i];
          float(&upper)[kOutColumns] = out[2 * i];
          float(&lower)[kOutColumns] = out[2 * i + 1];
          multiply_add<WeightElement>(upper[j], upper[j + 2], lower[j], lower[j + 2], a,
                                      first.low, second.low);
          multiply_add<WeightElement>(upper[j + 1], upper[j + 3], lower[j + 1], lower[j + 3], a,
                                      first.high, second.high);
        }
      }
    }
  }
}

}  // namespace tw_kernel
