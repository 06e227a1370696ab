#pragma once

#include "cuda/hopper/layout.hpp"
#include "kernel/configuration.hpp"

// How tiles in which elements may be dropped are visited.

namespace tw_kernel {

// Narrow heads under a mask, whose loop is so short that what it asks shows.
constexpr bool kIsShort = kHeadDim <= 64 && kConsumers == 3 && kMasked && !kHasScoreMod;

// They share the loop of all others, which saves a quarter of the compile time for 1 % of the speed at
// most (decision 37). They have a loop of their own where indices need bounds there, and under a mask of
// narrow heads on tiles of 192 rows, where one loop costs 2 %.
constexpr bool kOneLoop = !kIsShort && !kBoundsIndices;

// Whether a warpgroup leaves out a q tile's first kv tiles while its 64 rows keep nothing of them: of
// 192 rows under a causal mask the upper ones keep nothing of half a tile on average. The mask is
// asked before the products then (decision 30).
constexpr bool kLeavesOut = kIsShort && kHasMaskMod && !kSpansTwoBlocks;

// Without a block mask a mask_mod is asked about every element.
constexpr bool kAllMasked = kHasMaskMod && !kMasked;

}  // namespace tw_kernel
