#pragma once

#include "cuda/hopper/block_share.hpp"
#include "cuda/language.hpp"
#include "kernel/sequence.hpp"

// An item of a block of threads is a q tile with all of its kv tiles.

namespace tw_kernel {

constexpr bool kSplits = false;

struct Part {
  __forceinline__ int first(int) const { return 0; }
  __forceinline__ int count(int tiles) const { return tiles; }
  __forceinline__ BlockShare share(int partial, int full) const { return {0, partial, 0, full}; }
};

// Where an item's visits begin.
struct PartStart {
  __forceinline__ void set(int) {}
  __forceinline__ int or_else(int of_whole) const { return of_whole; }
};

TW_INLINE unsigned count_items(const ForwardArguments&, unsigned q_tiles) { return q_tiles; }
TW_INLINE unsigned q_tile_of(const ForwardArguments&, unsigned number) { return number; }
TW_INLINE Part part_of(const ForwardArguments&, unsigned) { return {}; }

}  // namespace tw_kernel
