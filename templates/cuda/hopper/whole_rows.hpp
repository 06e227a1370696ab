#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/q_tile_scores.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/language.hpp"
#include "cuda/store/row_ends.hpp"
#include "kernel/configuration.hpp"

// A warpgroup has visited all kv tiles of its rows, and stores them.

namespace tw_kernel {

// While the last values are multiplied.
TW_INLINE RowEnds end_run(const QTileScores& scores, const SnippetArguments& call,
                          const SnippetInputs& inputs, const Softmax& softmax) {
  return scores.end(call, inputs, softmax);
}

// Whether the rows are complete, and this warpgroup's to store.
TW_INLINE bool join_parts(const ForwardArguments&, const SnippetArguments&, const WorkItem&, int,
                          const QTileScores&, const SnippetInputs&, Softmax&, float (&)[kRows][kOutColumns],
                          RowEnds&) {
  return true;
}

}  // namespace tw_kernel
