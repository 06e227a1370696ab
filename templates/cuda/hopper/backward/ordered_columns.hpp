#pragma once

#include "abi/cuda_hopper_backward.hpp"
#include "cuda/attention/head_groups.hpp"
#include "cuda/hopper/backward/dense_columns.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/atomics.hpp"
#include "kernel/configuration.hpp"

// Which block owns which columns in a deterministic call: blocks take them in the order in which they start. A block
// waits for those alone that add to dQ before it (turns.hpp), and these have started, whatever the order in which the
// hardware starts blocks and however many there is room for.

namespace tw_kernel {

using HopperBackwardArguments = tilewright::abi::cuda::OrderedHopperBackwardArguments;

// What all threads of a block read of them.
struct SharedColumns {
  int number;  // of blocks that started before
};

// By one thread, before all meet.
TW_INLINE void share_own_columns(const HopperBackwardArguments& arguments, const SnippetArguments&, int,
                                 SharedColumns& shared) {
  if (threadIdx.x == 32) shared.number = static_cast<int>(add_and_synchronise(arguments.started, 1));
}

// Within a group of heads the last columns come first. Rows of q come in rising order, so under a causal mask a block
// reaches rows when the one that started before it has left them.
TW_INLINE OwnColumns find_own_columns(const HopperBackwardArguments& arguments, const SnippetArguments& call, int,
                                      const SharedColumns& shared) {
  const PlaceInGroups place = place_of_block(arguments, call, shared.number);
  return columns_of(call, place.head, arguments.kv_tiles - 1 - place.item);
}

// How many blocks add to the dQ of a tile before the block that owns these columns, if all columns meet the tile: every
// block with later columns does.
TW_INLINE int columns_after(const HopperBackwardArguments& arguments, const OwnColumns& own) {
  return arguments.kv_tiles - 1 - own.first / kQTile;
}

}  // namespace tw_kernel
