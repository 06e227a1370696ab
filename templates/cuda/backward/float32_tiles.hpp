#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/portable/float32.hpp"
#include "cuda/portable/load_float32.hpp"
#include "kernel/configuration.hpp"

// Tiles of the backward pass in float32, as tensor_core_tiles.hpp has them. Rows are read both along and
// across: four floats more than whole groups of 64 serve both.

namespace tw_kernel {

template <int kDim>
struct BackwardTile {
  static constexpr int kColumns = kDim;  // of a tensor's row
  static constexpr int kPad = (kDim + 63) / 64 * 64;
  static constexpr int kPitch = kPad + 4;
  static constexpr int kRowBytes = kPitch * 4;
  static constexpr int kSumColumns = kPad / 16;
  using Fragments = RowFragments<kDim, kPitch>;

  template <int kRowCount, typename Element>
  static __forceinline__ void load(unsigned tile, const Element* rows, long long stride, int count) {
    load_tile<kRowCount, kDim, kPitch, Element>(tile, StridedRows<Element>(rows, stride), count);
  }
  // sums += weights * the tile
  static __forceinline__ void add(const Weights& weights, unsigned tile,
                                  float (&sums)[kRows][kSumColumns]) {
    value_tile<kPad, kPitch>(weights, tile, sums);
  }
};

using KeyTile = BackwardTile<kHeadDim>;
using ValueTile = BackwardTile<kValueDim>;

}  // namespace tw_kernel
