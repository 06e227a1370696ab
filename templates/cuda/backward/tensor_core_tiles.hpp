#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/portable/half_weights.hpp"
#include "cuda/portable/load_tensor_cores.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/portable/tensor_cores.hpp"
#include "kernel/configuration.hpp"

// Tiles of the backward pass for tensor cores. kDim is a row's columns, kHeadDim or kValueDim.

namespace tw_kernel {

template <int kDim>
struct BackwardTile {
  static constexpr int kColumns = kDim;  // of a tensor's row
  static constexpr int kPad = (kDim + 15) / 16 * 16;
  static constexpr int kRowBytes = kPad * 2;
  static constexpr int kSumColumns = kPad / 4;  // of a thread's row of sums
  using Fragments = RowFragments<kPad>;

  template <int kRowCount, typename Element>
  static __forceinline__ void load(unsigned tile, const Element* rows, long long stride, int count) {
    load_tile<kRowCount, kDim, kPad, Element>(tile, StridedRows<Element>(rows, stride), count);
  }
  // sums += weights * the tile
  static __forceinline__ void add(const Weights& weights, unsigned tile,
                                  float (&sums)[kRows][kSumColumns]) {
    value_tile<kPad>(weights, tile, sums);
  }
};

using KeyTile = BackwardTile<kHeadDim>;
using ValueTile = BackwardTile<kValueDim>;

}  // namespace tw_kernel
