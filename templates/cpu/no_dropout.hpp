#pragma once

#include "cpu/inline.hpp"
#include "cpu/modify.hpp"
#include "snippet/snippets.hpp"

// Without dropout nothing is added to a kernel. See dropout.hpp.

namespace tw_kernel {

TW_INLINE void drop_weights(const tw_snippet::tw_State&, const ChunkPlace&, int, float*) {}
TW_INLINE float finish_dropout(const tw_snippet::tw_State&, const ChunkPlace&, float factor) {
  return factor;
}

}  // namespace tw_kernel
