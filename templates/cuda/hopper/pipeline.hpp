#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"
#include "kernel/kv_boxes.hpp"
#include "kernel/tiles.hpp"

// How tiles travel from the copy engine to the products, through two rings of kStages places, one
// of K and one of V, and one of kQStages places for Q. Every place has a barrier for "full", which
// the copies complete, and one for "empty", at which every consuming warp arrives when it is done
// with it. Tiles that are prepared (layout.hpp) go through separate rings first. Plans go from the
// planner to the producer, a thread each, one at a time and when asked for: who asks late gets the q
// tile that is due then, and no multiprocessor holds one that another could begin.

namespace tw_kernel {

constexpr int kPlans = 3;  // that of the q tile which is being brought, the one before, and the next

// A q tile that the producer has not begun.
struct TileRun {
  WorkItem work;
  Tiles::Lists lists;
  Tiles::Tile instead;  // what to visit where the lists are empty; else none
};

// Barriers of a ring of tiles that are to be prepared, where there are such tiles; and which of its places
// says that no tile comes any more.
template <bool kExists>
struct BroughtRing {};
template <>
struct BroughtRing<true> {
  unsigned long long full[kBroughtStages], empty[kBroughtStages];
  bool is_end[kBroughtStages];
  Tiles::Tile kv_tile[kBroughtStages];  // of K
};

// In shared memory after the tiles.
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
  BroughtRing<kPreparesK> brought_k;
  BroughtRing<kPreparesV> brought_v;
};
static_assert(kControlOffset + sizeof(Control) <= kLaunchSharedBytes,
              "a launch has the tactic's shared_bytes");

// Places of a q tile, by how many the block had before: its plan's, its Q's and its announcement's.
struct QPlace {
  unsigned count = 0;

  __forceinline__ PlaceInRing<kPlans> plan() const { return {count}; }
  __forceinline__ PlaceInRing<kQStages> q() const { return {count}; }
  __forceinline__ int work() const { return static_cast<int>(count % (kQStages + 1)); }
  __forceinline__ void advance() { ++count; }
};

// preparers: warps that read a tile of the ring.
TW_INLINE void make_ring(BroughtRing<true>& ring, unsigned preparers) {
#pragma unroll 1
  for (int i = 0; i < kBroughtStages; ++i) {
    init_barrier(shared_address(&ring.full[i]), Loader::kCount);
    init_barrier(shared_address(&ring.empty[i]), preparers);
    ring.is_end[i] = false;
  }
}
TW_INLINE void make_ring(BroughtRing<false>&, unsigned) {}

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
    init_barrier(shared_address(&control.k_full[i]), kPreparesK ? kPreparersOfK : Loader::kCount);
    init_barrier(shared_address(&control.k_empty[i]), kWarpsThatRead);
    init_barrier(shared_address(&control.v_full[i]), kPreparesV ? kPreparersOfV : Loader::kCount);
    init_barrier(shared_address(&control.v_empty[i]), kWarpsThatRead);
  }
#pragma unroll 1
  for (int i = 0; i < kPlans; ++i) {
    init_barrier(shared_address(&control.plan_asked[i]), Loader::kLoaders);
    init_barrier(shared_address(&control.plan_full[i]), 1);
  }
  make_ring(control.brought_k, kPreparersOfK);
  make_ring(control.brought_v, kPreparersOfV);
  publish_barriers();
}

// A stage of the ring to which the copy engine brings tiles: that of tiles to prepare where there is one, else
// that of `ready` ones.
TW_INLINE BroughtPlace place_in(BroughtRing<true>& ring, unsigned brought, int stage, const BroughtPlace&) {
  return {brought, ring.full[stage], ring.empty[stage]};
}
TW_INLINE BroughtPlace place_in(BroughtRing<false>&, unsigned, int, const BroughtPlace& ready) {
  return ready;
}
TW_INLINE BroughtPlace place_of_k(const Shared& shared, int stage) {
  Control& control = *shared.control;
  return place_in(control.brought_k, shared.brought_k(stage), stage,
                  {shared.k(stage), control.k_full[stage], control.k_empty[stage]});
}
TW_INLINE BroughtPlace place_of_v(const Shared& shared, int stage) {
  Control& control = *shared.control;
  return place_in(control.brought_v, shared.brought_v(stage), stage,
                  {shared.v(stage), control.v_full[stage], control.v_empty[stage]});
}

// Where the number of a stage's tile stands: the warps that prepare the tile write it for the consumers.
TW_INLINE Tiles::Tile& tile_in(BroughtRing<true>& ring, int stage, Tiles::Tile&) {
  return ring.kv_tile[stage];
}
TW_INLINE Tiles::Tile& tile_in(BroughtRing<false>&, int, Tiles::Tile& ready) { return ready; }

}  // namespace tw_kernel
