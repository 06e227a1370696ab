#pragma once

#include "splits.hpp"

// What forward kernels that split q tiles take too.

namespace tilewright::abi::cuda {

/// forward_split*, forward_prefill_split*: grid as forward's, with an item in place of each q tile.
/// @tparam Arguments ForwardArguments, PackedForwardArguments or NewRowsForwardArguments
template <typename Arguments>
struct WithSplits : Arguments {
  SplitWork splits;
};

}  // namespace tilewright::abi::cuda
