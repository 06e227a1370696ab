#pragma once

#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/hopper_backward_tile.hpp"

// How tiles of rows of q travel through a block. The planner writes which tile is next, one ahead of the
// loader; the loader brings it to one of kStages places; the consumers release its Q and its dO when they
// have done with them. Warps that take dQ away read the same plan.

namespace tw_kernel {

// The loader has a place for tile i when the consumers have released that of tile i - kStages. By then they have staged
// dQ of the tile before that one, for which they waited until the warp that adds had taken dQ of one more before. So it
// has read the plans of tiles up to i - kStages - 2.
constexpr int kPlans = kStages + 3;

// In shared memory after the tiles.
struct Control {
  unsigned long long q_full[kStages], q_empty[kStages];
  unsigned long long do_full[kStages], do_empty[kStages];
  // A tile's dX is there; dX of the tile before has been read.
  unsigned long long gradients_full[kGradientStages], gradients_read[kGradientStages];
  unsigned long long do_landed;  // of a dO that the loader corrects before the consumers see it
  unsigned long long plan_full;  // of each tile in turn
  unsigned long long plan_asked;
  PassingTile plan[kPlans];
  SharedColumns columns;
};
static_assert(kControlOffset + sizeof(Control) <= kLaunchSharedBytes,
              "a launch has the tactic's shared_bytes");

struct Shared {
  unsigned tiles;  // address of all tiles, a multiple of 1024
  Control* control;

  __forceinline__ unsigned k() const { return tiles + kKOffset; }
  __forceinline__ unsigned v() const { return tiles + kVOffset; }
  __forceinline__ unsigned q(int stage) const { return tiles + kQOffset + stage * kQBytes; }
  __forceinline__ unsigned dout(int stage) const { return tiles + kDoOffset + stage * kDoBytes; }
  __forceinline__ unsigned gradients(int stage) const {
    return tiles + kGradientOffset + stage * kGradientBytes;
  }
  __forceinline__ unsigned dq(int part) const { return tiles + kDqOffset + part * kDqPartBytes; }
  // lse of a tile's rows, and after it delta.
  __forceinline__ unsigned lse(int stage) const { return tiles + kFactsOffset + stage * 2 * kFactsBytes; }
  __forceinline__ unsigned diagonals() const { return tiles + kDiagonalsOffset; }
  __forceinline__ unsigned own_sums() const { return tiles + kOwnSumsOffset; }
  __forceinline__ unsigned row_sums() const { return tiles + kRowSumsOffset; }
  // Of the calling warp's values by the difference of indices.
  __forceinline__ unsigned differences() const {
    return tiles + kDifferencesOffset + consumer_thread() / 32 * (kDifferenceBytes / (kConsumers * 4));
  }
};

// Which tile of the block, and where it is.
struct TilePlace {
  int stage = 0;
  unsigned parity = 0;  // of the phase in which its place becomes full
  int plan = 0;

  __forceinline__ void advance() {
    plan = plan + 1 == kPlans ? 0 : plan + 1;
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

TW_INLINE void make_pipeline(const Shared& shared) {
  constexpr int kConsumerWarps = kConsumers * 4;
  Control& control = *shared.control;
#pragma unroll 1
  for (int i = 0; i < kStages; ++i) {
    init_barrier(shared_address(&control.q_full[i]), 1);
    init_barrier(shared_address(&control.q_empty[i]), kConsumerWarps);
    init_barrier(shared_address(&control.do_full[i]), 1);
    init_barrier(shared_address(&control.do_empty[i]), kConsumerWarps);
  }
#pragma unroll 1
  for (int i = 0; i < kGradientStages; ++i) {
    init_barrier(shared_address(&control.gradients_full[i]), kConsumerWarps);
    init_barrier(shared_address(&control.gradients_read[i]), kConsumerWarps);
  }
  init_barrier(shared_address(&control.do_landed), 1);
  init_barrier(shared_address(&control.plan_full), 1);
  init_barrier(shared_address(&control.plan_asked), 1);
  publish_barriers();
}

}  // namespace tw_kernel
