#pragma once

#include "cuda_forward.hpp"
#include "decode.hpp"

// Arguments of the decode kernels of dense calls.

namespace tilewright::abi::cuda {

/// forward_decode*, forward_masked_decode* of dense layouts: grid (decode.blocks, 1, 1).
///   void tilewright_forward(DecodeForwardArguments, SnippetArguments<buffers, scalars>)
/// q_tiles, heads_in_group, whole_groups and the mask's q_tile_order are not read. A block mask has one
/// row of tiles for each of its heads.
struct DecodeForwardArguments : ForwardArguments {
  DecodeWork decode;  // units_before and lists are not read: units follow from the shape, or from the mask's
                      // row offsets
};

}  // namespace tilewright::abi::cuda
