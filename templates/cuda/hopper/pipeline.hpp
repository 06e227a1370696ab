#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"
#include "kernel/tiles.hpp"

// How tiles travel from the copy engine to the products, through two rings of kStages places, one
// of K and one of V, and one of kQStages places for Q. Every place has a barrier for "full", which
// the copies complete, and one for "empty", at which every consuming warp arrives when it is done
// with it. Plans go from the planner to the producer, a thread each, one at a time and when asked for:
// who asks late gets the q tile that is due then, and no multiprocessor holds one that another could
// begin.

namespace tw_kernel {

constexpr int kPlans = 3;  // that of the q tile which is being brought, the one before, and the next

// A q tile that the producer has not begun.
struct TileRun {
  WorkItem work;
  Tiles::Lists lists;
  Tiles::Tile instead;  // what to visit where the lists are empty; else none
};

// In shared memory behind the tiles.
struct Control {
  unsigned long long q_full[kQStages], q_empty[kQStages];
  unsigned long long k_full[kStages], k_empty[kStages];
  unsigned long long v_full[kStages], v_empty[kStages];
  unsigned long long plan_asked[kPlans], plan_full[kPlans];
  Tiles::Tile kv_tile[kStages];  // whose K is in the stage
  // One more than places of Q: the producer may announce a q tile as soon as there is an empty
  // place, while the consumers still store the one whose place it was.
  WorkItem work[kQStages + 1];
  TileRun plan[kPlans];
};
static_assert(kControlOffset + sizeof(Control) <= kLaunchSharedBytes,
              "a launch has the tactic's shared_bytes");

struct Shared {
  unsigned tiles;  // address of all tiles, a multiple of 1024
  Control* control;

  __forceinline__ unsigned q(int stage, int consumer) const {
    return tiles + kQOffset + (stage * kConsumers + consumer) * kQGroupBytes;
  }
  __forceinline__ unsigned k(int stage) const { return tiles + kKOffset + stage * kKBytes; }
  __forceinline__ unsigned v(int stage) const { return tiles + kVOffset + stage * kVBytes; }
  // q_stage: where the q tile's Q was.
  __forceinline__ unsigned out(int q_stage, int consumer) const {
    return kOutOverQ ? q(q_stage, consumer) : tiles + kOutOffset + consumer * kOutGroupBytes;
  }
};

// A place in a ring, by how many were before it, and the parity of the phase in which it becomes full
// this time round.
template <int kPlaces>
struct PlaceInRing {
  unsigned count = 0;

  __forceinline__ int stage() const { return static_cast<int>(count % kPlaces); }
  __forceinline__ unsigned parity() const { return count / kPlaces % 2; }
  __forceinline__ void advance() { ++count; }
  __forceinline__ PlaceInRing next() const { return {count + 1}; }
};

// Places of a q tile, by how many the block had before: its plan's, its Q's and its announcement's.
struct QPlace {
  unsigned count = 0;

  __forceinline__ PlaceInRing<kPlans> plan() const { return {count}; }
  __forceinline__ PlaceInRing<kQStages> q() const { return {count}; }
  __forceinline__ int work() const { return static_cast<int>(count % (kQStages + 1)); }
  __forceinline__ void advance() { ++count; }
};

// The same in the rings of K and V for the consumers, where what depends on it is waited for: a pair is
// ready sooner than what follows from a count.
struct KvPlace {
  int stage = 0;
  unsigned parity = 0;

  __forceinline__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

TW_INLINE void make_pipeline(const Shared& shared) {
  constexpr int kWarpsThatRead = kConsumers * 4;
  Control& control = *shared.control;
#pragma unroll 1
  for (int i = 0; i < kQStages; ++i) {
    init_barrier(shared_address(&control.q_full[i]), 1);
    init_barrier(shared_address(&control.q_empty[i]), kWarpsThatRead);
  }
#pragma unroll 1
  for (int i = 0; i < kStages; ++i) {
    init_barrier(shared_address(&control.k_full[i]), 1);
    init_barrier(shared_address(&control.k_empty[i]), kWarpsThatRead);
    init_barrier(shared_address(&control.v_full[i]), 1);
    init_barrier(shared_address(&control.v_empty[i]), kWarpsThatRead);
  }
#pragma unroll 1
  for (int i = 0; i < kPlans; ++i) {
    init_barrier(shared_address(&control.plan_asked[i]), 1);
    init_barrier(shared_address(&control.plan_full[i]), 1);
  }
  publish_barriers();
}

// The calling warp is done with a place: all of its lanes have read what they wanted.
TW_INLINE void release(unsigned long long& empty) {
  __syncwarp();
  if (lane() == 0) arrive(shared_address(&empty));
}

}  // namespace tw_kernel
