#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/attention/head_groups.hpp"
#include "cuda/hopper/backward/dense_columns.hpp"
#include "cuda/language.hpp"

// Which block owns which columns in a dense call: block n owns the n-th.

namespace tw_kernel {

using tilewright::abi::cuda::HopperBackwardArguments;

// What all threads of a block read of them.
struct SharedColumns {};

TW_INLINE void share_own_columns(const HopperBackwardArguments&, const SnippetArguments&, int, SharedColumns&) {}

// Within a group of heads the first columns come first: under a causal mask they meet most rows.
TW_INLINE OwnColumns find_own_columns(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                      int number, const SharedColumns&) {
  const PlaceInGroups place = place_of_block(arguments, call, number);
  return columns_of(call, place.head, place.item);
}

}  // namespace tw_kernel
