#pragma once

namespace tw_kernel {

// A thread's values of score_mod by the difference of indices, where it takes none.
struct NoDifferences {
  __forceinline__ void advance(int) {}
  __forceinline__ float of(int, int) const { return 0.0f; }
};

}  // namespace tw_kernel
