#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/portable/float32.hpp"
#include "cuda/portable/load_padded_float32.hpp"
#include "kernel/configuration.hpp"

// float32_tiles.hpp for rows of tensors that have fewer columns than those of tiles: kColumnsOfRow of kDim.

namespace tw_kernel {

template <int kDim, int kColumnsOfRow>
struct BackwardTile {
  static constexpr int kColumns = kColumnsOfRow;
  static constexpr int kPad = (kDim + 63) / 64 * 64;
  static constexpr int kPitch = kPad + 4;
  static constexpr int kRowBytes = kPitch * 4;
  static constexpr int kSumColumns = kPad / 16;
  using Fragments = RowFragments<kDim, kPitch>;

  template <int kRowCount, typename Element>
  static __forceinline__ void load(unsigned tile, const Element* rows, long long stride, int count) {
    load_tile<kRowCount, kDim, kColumns, kPitch>(tile, StridedRows<Element>(rows, stride), count);
  }
  // sums += weights * the tile
  static __forceinline__ void add(const Weights& weights, unsigned tile,
                                  float (&sums)[kRows][kSumColumns]) {
    value_tile<kPad, kPitch>(weights, tile, sums);
  }
};

using KeyTile = BackwardTile<kHeadDim, kHeadColumns>;
using ValueTile = BackwardTile<kValueDim, kValueColumns>;

}  // namespace tw_kernel
