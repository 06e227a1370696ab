#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/attention/head_groups.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// The columns that a block owns in a dense call, in whatever order blocks take them.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;
using tilewright::abi::cuda::BackwardMaps;

struct OwnColumns {
  int b;
  int h_kv;
  int first;

  __forceinline__ bool exists() const { return true; }
  __forceinline__ PlacedSequence sequence() const { return {}; }
};

TW_INLINE PlaceInGroups place_of_block(const tilewright::abi::cuda::HopperBackwardArguments& arguments,
                                       const SnippetArguments& call, int number) {
  return place_in_groups(number, arguments.kv_tiles, arguments.heads_in_group, arguments.whole_groups,
                         call.batch * call.num_kv_heads);
}

// head: of the kv heads of all batches; item: of the head's columns
TW_INLINE OwnColumns columns_of(const SnippetArguments& call, int head, int item) {
  const int b = head / call.num_kv_heads;
  return {b, head - b * call.num_kv_heads, item * kQTile};
}

// A tile's number, counted over all heads: facts and sums of dQ lie in this order.
TW_INLINE long long number_of_tile(const tilewright::abi::cuda::HopperBackwardArguments& arguments,
                                   const SnippetArguments& call, const OwnColumns& own, int h, int first_row) {
  return static_cast<long long>(own.b * call.num_q_heads + h) * arguments.q_tiles + first_row / kKvTile;
}

}  // namespace tw_kernel
