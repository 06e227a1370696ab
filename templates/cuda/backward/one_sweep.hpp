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
  const int own_left = call.kv_len - find_own_columns(arguments, call).first;
  const AddedDq dq(arguments.dq.data == nullptr ? nullptr : arguments.dq_sums, own_left);
  backward_columns<true, true>(arguments, call, sums, shared_memory, dq);
}

}  // namespace tw_kernel
