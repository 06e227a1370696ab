#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/language.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/store/rows.hpp"
#include "kernel/configuration.hpp"

// The end of a warpgroup's 64 rows where the output has 32 or 8 bits: straight from registers.

namespace tw_kernel {

TW_INLINE void store_out(const ForwardArguments& arguments, const TensorMaps&,
                         const SnippetArguments& call, const Shared&, const QTile& q_tile, int, int,
                         const RowEnds& ends, const float (&out)[kRows][kOutColumns]) {
  store_rows(arguments, call, q_tile, ends, out);
}

}  // namespace tw_kernel
