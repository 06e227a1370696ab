#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/added_dq.hpp"
#include "cuda/backward/columns.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// All gradients of a dense call by the blocks that own columns: five products of a tile, where two sweeps take
// seven. Blocks add to the sums of dQ in the order in which they come.

namespace tw_kernel {

using tilewright::abi::cuda::OneSweepArguments;

TW_INLINE void backward_in_one_sweep(const OneSweepArguments& arguments, const SnippetArguments& call,
                                     const Gathered<false>::Sums& sums, unsigned shared_memory) {
  const int tiles = (call.kv_len + kQTile - 1) / kQTile;
  const int head = static_cast<int>(blockIdx.x) / tiles;
  const OwnColumns own = {head / call.num_kv_heads, head % call.num_kv_heads,
                          static_cast<int>(blockIdx.x) % tiles * kQTile};
  const AddedDq dq(arguments.dq.data == nullptr ? nullptr : arguments.dq_sums, call.kv_len - own.first);
  backward_columns<true, true>(arguments, call, sums, shared_memory, own, dq);
}

}  // namespace tw_kernel
