#pragma once

#include "cuda/language.hpp"
#include "cuda/portable/load_tensor_cores.hpp"
#include "cuda/portable/score_products.hpp"
#include "cuda/portable/tensor_cores.hpp"
#include "kernel/configuration.hpp"

// Rows of K and V whose elements are of Q's type: they are copied as they are.

namespace tw_kernel {

template <typename Rows>
TW_INLINE void load_k(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kHeadDim, kHeadPad, KvElement>(tile, rows, count);
}
template <typename Rows>
TW_INLINE void load_v(unsigned tile, const Rows& rows, int count) {
  load_tile<kKvTile, kValueDim, kValuePad, KvElement>(tile, rows, count);
}

}  // namespace tw_kernel
