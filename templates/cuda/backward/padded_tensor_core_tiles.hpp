#pragma once

#include "cuda/attention/strided_rows.hpp"
#include "cuda/portable/half_weights.hpp"
#include "cuda/portable/load_padded_tensor_cores.hpp"
#include "cuda/portable/score_fragments.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/portable/tensor_cores.hpp"
#include "kernel/configuration.hpp"

// tensor_core_tiles.hpp for rows of tensors that have fewer columns than those of tiles: kColumnsOfRow of kDim.

namespace tw_kernel {

template <int kDim, int kColumnsOfRow>
struct BackwardTile {
  static constexpr int kColumns = kColumnsOfRow;
  static constexpr int kPad = (kDim + 15) / 16 * 16;
  static constexpr int kRowBytes = kPad * 2;
  static constexpr int kSumColumns = kPad / 4;  // of a thread's row of sums
  using Fragments = RowFragments<kPad>;

  template <int kRowCount, typename Element>
  static __forceinline__ void load(unsigned tile, const Element* rows, long long stride, int count) {
    load_tile<kRowCount, kColumns, kPad>(tile, StridedRows<Element>(rows, stride), count);
  }
  // sums += weights * the tile
  static __forceinline__ void add(const Weights& weights, unsigned tile,
                                  float (&sums)[kRows][kSumColumns]) {
    value_tile<kPad>(weights, tile, sums);
  }
};

using KeyTile = BackwardTile<kHeadDim, kHeadColumns>;
using ValueTile = BackwardTile<kValueDim, kValueColumns>;

}  // namespace tw_kernel
