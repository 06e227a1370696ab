#pragma once

#include "attention/row_sum.hpp"
#include "cpu/inline.hpp"
#include "cpu/modify.hpp"
#include "snippet/snippets.hpp"

// Without scales and a sink nothing is added to a kernel. See scales.hpp.

namespace tw_kernel {

TW_INLINE float find_scale(const tw_snippet::tw_State&, const ChunkPlace&, float scale) { return scale; }
TW_INLINE void scale_scores(const tw_snippet::tw_State&, const ChunkPlace&, int, int, float*) {}
TW_INLINE void scale_weights(const tw_snippet::tw_State&, const ChunkPlace&, int, int, float*) {}
TW_INLINE void finish_row(const tw_snippet::tw_State&, const ChunkPlace&, int, float, RowSum&) {}

}  // namespace tw_kernel
