#pragma once

#include "cuda_forward.hpp"

// What the kernel of the softmax's weights takes on a GPU.

namespace tilewright::abi::cuda {

/// weights*: grid (q_tiles * batch * num_q_heads, 1, 1), after the forward kernel has written lse.
///   void tilewright_weights(WeightsArguments, SnippetArguments<buffers, scalars>)
/// v, out and launch are not read. scaling is {scale, 0}: scores stay in the units of score_mod.
struct WeightsArguments : ForwardArguments {
  void* weights;  // [batch, num_q_heads, q_len, kv_len] in out's dtype, contiguous
};

}  // namespace tilewright::abi::cuda
