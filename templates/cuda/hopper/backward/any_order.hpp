#pragma once

#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"

// Blocks add to dQ of a tile in the order in which they end with it: in place of turns.hpp.

namespace tw_kernel {

constexpr bool kTakesTurns = false;

class DqTurns {
 public:
  __forceinline__ DqTurns(const HopperBackwardArguments&, const SnippetArguments&, const OwnColumns&, int) {}
  __forceinline__ void wait_for(const PassingTile&) const {}
  __forceinline__ void pass_on() const {}
};

TW_INLINE void keep_turns(const HopperBackwardArguments&, const SnippetArguments&, const Shared&, const OwnColumns&,
                          int) {}
TW_INLINE void begin_turn(int) {}
TW_INLINE void end_turn(int) {}

}  // namespace tw_kernel
