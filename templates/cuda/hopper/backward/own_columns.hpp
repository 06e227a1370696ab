#pragma once

#include "abi/cuda_hopper_backward.hpp"
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

// Blocks start in the order of their numbers. Heads are taken in groups whose tensors fit into the L2
// cache; within a group the first columns of all its heads come first: under a causal mask they meet most
// rows. The last group is a large one (attention/uniform_q_tiles.hpp).
TW_INLINE OwnColumns find_own_columns(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                      int number, const SharedColumns&) {
  const int tiles_of_group = arguments.kv_tiles * arguments.heads_in_group;
  const int group = min(number / tiles_of_group, arguments.whole_groups);
  const int in_group = number - group * tiles_of_group;
  const int first_head = group * arguments.heads_in_group;
  const int heads = group < arguments.whole_groups ? arguments.heads_in_group
                                                   : call.batch * call.num_kv_heads - first_head;
  const int head = first_head + in_group % heads;
  const int b = head / call.num_kv_heads;
  return {b, head - b * call.num_kv_heads, in_group / heads * kQTile};
}

// A tile's number among those of all heads: facts and sums of dQ lie in this order.
TW_INLINE long long number_of_tile(const HopperBackwardArguments& arguments, const SnippetArguments& call,
                                   const OwnColumns& own, int h, int first_row) {
  return static_cast<long long>(own.b * call.num_q_heads + h) * arguments.q_tiles + first_row / kKvTile;
}

}  // namespace tw_kernel
