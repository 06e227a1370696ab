#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/resident/work.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"

// How K and V stay in shared memory while rows of q pass by. Tile t of K and of V is in place t, from when it is
// brought until each warpgroup has computed the last of its units that has something of the tile. Each warpgroup
// has a ring of kQStages places for Q, so that it takes its next unit when it wants. One thread finds the next item and
// brings its K and V, and one for each warpgroup brings Q, each at its own pace.

namespace tw_kernel {

constexpr int kPlans = 2;     // of the item that is brought, and of the next
constexpr int kQLoaders = kConsumers;
static_assert(kQLoaders <= 3, "four warps: one plans and brings K and V, the others bring Q");

// Announced units of a warpgroup. Where out does not lie over Q, one more than places of Q: a unit is announced as soon
// as there is an empty place, while the warpgroup still stores the one whose place it was.
constexpr int kUnits = kOutOverQ && kStoresBoxes ? kQStages : kQStages + 1;

// In shared memory after the tiles.
struct Control {
  unsigned long long q_full[kConsumers][kQStages], q_empty[kConsumers][kQStages];
  unsigned long long k_full[kStages], k_empty[kStages];
  unsigned long long v_full[kStages], v_empty[kStages];
  unsigned long long plan_asked[kPlans], plan_full[kPlans];
  Unit unit[kConsumers][kUnits];
  ResidentItem plan[kPlans];
};
static_assert(kControlOffset + sizeof(Control) <= kLaunchSharedBytes, "a launch has the tactic's shared_bytes");

// Places of a unit, by how many its warpgroup had before.
struct UnitPlace {
  unsigned count = 0;

  __forceinline__ PlaceInRing<kQStages> q() const { return {count}; }
  __forceinline__ int announcement() const { return static_cast<int>(count % kUnits); }
  __forceinline__ void advance() { ++count; }
};

TW_INLINE void make_pipeline(const Shared& shared) {
  constexpr int kWarpsOfGroup = 4;
  Control& control = *shared.control;
#pragma unroll 1
  for (int i = 0; i < kConsumers * kQStages; ++i) {
    init_barrier(shared_address(&control.q_full[0][0] + i), 1);
    init_barrier(shared_address(&control.q_empty[0][0] + i), kWarpsOfGroup);
  }
#pragma unroll 1
  for (int i = 0; i < kStages; ++i) {
    init_barrier(shared_address(&control.k_full[i]), 1);
    init_barrier(shared_address(&control.k_empty[i]), kConsumers * kWarpsOfGroup);
    init_barrier(shared_address(&control.v_full[i]), 1);
    init_barrier(shared_address(&control.v_empty[i]), kConsumers * kWarpsOfGroup);
  }
#pragma unroll 1
  for (int i = 0; i < kPlans; ++i) {
    init_barrier(shared_address(&control.plan_asked[i]), kQLoaders);
    init_barrier(shared_address(&control.plan_full[i]), 1);
  }
  publish_barriers();
}

// A thread's way through the plans of items.
class ItemReader {
 public:
  __forceinline__ explicit ItemReader(const Shared& shared) : shared_(shared) {}

  __forceinline__ const ResidentItem& next() const {
    const int stage = place_.stage();
    wait(shared_address(&shared_.control->plan_full[stage]), place_.parity(), "a plan, stage", stage);
    return shared_.control->plan[stage];
  }
  // For the next item; still reads the one at hand.
  __forceinline__ void ask() const { arrive(shared_address(&shared_.control->plan_asked[place_.stage()])); }
  __forceinline__ void advance() { place_.advance(); }

 private:
  const Shared& shared_;
  PlaceInRing<kPlans> place_;
};

}  // namespace tw_kernel
