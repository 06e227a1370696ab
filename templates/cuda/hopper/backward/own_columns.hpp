#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/attention/head_groups.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// The columns that a block owns in a dense call.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;
using tilewright::abi::cuda::BackwardMaps;
using tilewright::abi::cuda::HopperBackwardArguments;

struct OwnColumns {
  int b;
  int h_kv;
  int first;

  __forceinline__ bool exists() const { return true; }
  __forceinline__ PlacedSequence sequence() const { return {}; }
};

// What all threads of a block read of them.
struct SharedColumns {};

TW_INLINE void share_own_columns(const HopperBackwardArguments&, const SnippetArguments&, int, SharedColumns&) {}

// Within a group of heads the first columns come first: under a causal mask they meet most rows.
TW_INLINE OwnColumns find_own_columns(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                      int number, const SharedColumns&) {
  const PlaceInGroups place = place_in_groups(number, arguments.kv_tiles, arguments.heads_in_group,
                                              arguments.whole_groups, call.batch * call.num_kv_heads);
  const int b = place.head / call.num_kv_heads;
  return {b, place.head - b * call.num_kv_heads, place.item * kQTile};
}

// A tile's number, counted over all heads: facts and sums of dQ lie in this order.
TW_INLINE long long number_of_tile(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                   const OwnColumns& own, int h, int first_row) {
  return static_cast<long long>(own.b * call.num_q_heads + h) * arguments.q_tiles + first_row / kKvTile;
}

}  // namespace tw_kernel
