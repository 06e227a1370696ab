#pragma once

#include "cuda/language.hpp"

// Numbers that CUDA has no names for.

namespace tw_kernel {
constexpr float kInfinity = __builtin_inff();
constexpr float kLn2 = 0.693147180559945309f;
}  // namespace tw_kernel
