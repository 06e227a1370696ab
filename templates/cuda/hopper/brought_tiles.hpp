#pragma once

#include "cuda/hopper/places.hpp"

// Tiles of K and V of Q's type are operands as the copy engine brings them.

namespace tw_kernel {

struct Preparer {
  __forceinline__ explicit Preparer(const Shared&) {}
  static __forceinline__ bool takes_part() { return false; }
  __forceinline__ void run() {}
};

}  // namespace tw_kernel
