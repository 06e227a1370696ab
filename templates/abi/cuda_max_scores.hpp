#pragma once

// What forward kernels also take where the spec's outputs name max_scores.

namespace tilewright::abi::cuda {

/// @tparam Arguments ForwardArguments, DecodeForwardArguments, PackedForwardArguments or NewRowsForwardArguments
template <typename Arguments>
struct WithMaxScores : Arguments {
  float* max_scores;  // the rows' greatest kept scores, in lse's shape, contiguous
};

}  // namespace tilewright::abi::cuda
