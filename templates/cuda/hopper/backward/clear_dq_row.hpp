#pragma once

#include "cuda/backward/out_rows.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// What prepare writes in a dense call and in a packed one.

namespace tw_kernel {

constexpr float kGreatestFloat = 0x1.fffffep127f;

TW_INLINE void clear_dq_row(float* sums, int lane) {
  for (int column = lane * 4; column < kHeadWidth; column += kLanesOfRow<kValueDim> * 4) {
    *reinterpret_cast<float4*>(sums + column) = {0.0f, 0.0f, 0.0f, 0.0f};
  }
}

}  // namespace tw_kernel
