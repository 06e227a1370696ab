#pragma once

#include "cuda/hopper/block_share.hpp"
#include "cuda/language.hpp"
#include "kernel/sequence.hpp"

// An item of a block of threads is a part of a q tile's kv tiles: an equal share of those that its row visits, not
// of the columns, so that all parts cost alike under any mask.

namespace tw_kernel {

constexpr bool kSplits = true;

// Few bytes: a launch has 1024 of shared memory for all of the pipeline's control (hopper_tactic.cpp).
struct Part {
  unsigned item;
  unsigned short number;  // of a q tile's
  unsigned short parts;   // 32 at most (split_parts.cpp)

  // Parts differ by one at most, the longer ones first. One division of 32 bits: it takes few registers.
  __forceinline__ int first(int tiles) const { return number * each(tiles) + min(static_cast<int>(number), rest(tiles)); }
  __forceinline__ int count(int tiles) const { return each(tiles) + static_cast<int>(number < rest(tiles)); }
  // Partial blocks are visited first.
  __forceinline__ BlockShare share(int partial, int full) const {
    const int begin = first(partial + full), end = begin + count(partial + full);
    const int first_partial = min(begin, partial), first_full = max(begin - partial, 0);
    return {first_partial, min(end, partial) - first_partial, first_full, max(end - partial, 0) - first_full};
  }

 private:
  __forceinline__ int each(int tiles) const {
    return static_cast<int>(static_cast<unsigned>(tiles) / static_cast<unsigned>(parts));
  }
  __forceinline__ int rest(int tiles) const { return tiles - each(tiles) * parts; }
};

// Where an item's visits begin.
struct PartStart {
  int at;
  __forceinline__ void set(int x) { at = x; }
  __forceinline__ int or_else(int) const { return at; }
};

TW_INLINE unsigned count_items(const ForwardArguments& arguments, unsigned q_tiles) {
  return q_tiles * arguments.splits.parts;
}
TW_INLINE unsigned q_tile_of(const ForwardArguments& arguments, unsigned number) {
  return number / static_cast<unsigned>(arguments.splits.parts);
}
TW_INLINE Part part_of(const ForwardArguments& arguments, unsigned number) {
  const auto parts = static_cast<unsigned>(arguments.splits.parts);
  return {number, static_cast<unsigned short>(number % parts), static_cast<unsigned short>(parts)};
}

}  // namespace tw_kernel
