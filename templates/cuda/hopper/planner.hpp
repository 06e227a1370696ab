#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/schedule.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"
#include "kernel/find_q_tile.hpp"
#include "kernel/item_parts.hpp"
#include "kernel/tiles.hpp"

// The thread that looks up which q tile comes next and what its kv tiles are: some reads from global
// memory, each of which waits for the one before. It does so while the producer brings the last tiles
// of the q tile before. Where there are lists of several rows to find, its warp helps.

namespace tw_kernel {

// A sentinel past the last tile; it has no elements. A q tile without kv tiles visits it, as all others
// visit theirs.
TW_INLINE Tiles::Tile tile_behind(int kv_len) {
  return Tiles::Tile::sentinel((kv_len + kKvTile - 1) / kKvTile * kKvTile);
}

class Planner {
 public:
  __forceinline__ Planner(const ForwardArguments& arguments, const SnippetArguments& call,
                          const Shared& shared)
      : arguments_(arguments), call_(call), shared_(shared) {}

  static __forceinline__ bool takes_part() {
    return Tiles::kFoundByWarp ? threadIdx.x / 32 == 1 : threadIdx.x == 32;
  }

  __forceinline__ void run() {
    Schedule schedule(arguments_, call_);  // the first lane's counts
#pragma unroll 1
    while (true) {
      const unsigned number = of_first_lane(schedule.done() ? kNoQTile : schedule.number());
      if (number == kNoQTile) break;
      if constexpr (kSplits) {
        make_plan_of_part(number, plan());
      } else {
        make_plan(find_q_tile(arguments_, call_, number), plan());
      }
      hand_over();
      wait_until_asked();
      if (leads()) schedule.advance();
    }
    if (leads()) plan().work.kv_tiles = 0;  // no q tile
    hand_over();
  }

 private:
  static constexpr unsigned kNoQTile = ~0u;

  static __forceinline__ bool leads() { return !Tiles::kFoundByWarp || lane() == 0; }
  static __forceinline__ unsigned of_first_lane(unsigned x) {
    return Tiles::kFoundByWarp ? __shfl_sync(~0u, x, 0) : x;
  }

  // Its place: the producer asks for a plan when it needs the one before the last no longer.
  __forceinline__ TileRun& plan() const { return shared_.control->plan[place_.stage()]; }

  // The part stays in shared memory while the q tile is found: that takes all registers.
  __forceinline__ void make_plan_of_part(unsigned number, TileRun& plan) const {
    static_cast<Part&>(plan.work) = part_of(arguments_, number);
    asm volatile("" ::: "memory");
    make_plan(find_q_tile(arguments_, call_, q_tile_of(arguments_, number)), plan);
  }

  __forceinline__ void make_plan(const QTile& q_tile, TileRun& plan) const {
    // As if it were another each time: what follows from it has no registers to stay in.
    int kv_len = q_tile.kv_len(call_);
    asm volatile("" : "+r"(kv_len));
    if (leads()) plan.work.q_tile = q_tile;
    if (kSplits) asm volatile("" ::: "memory");
    Tiles::find(tile_source(arguments_), q_tile, plan.work, kv_len, plan.lists);
    if (!leads()) return;
    // A mask's last block of rows may reach beyond q_len.
    const bool has_rows = q_tile.first_row < q_tile.q_len(call_);
    const bool bounds_rows = kBoundsIndices && q_tile.first_row + kQTile > q_tile.q_len(call_);
    const int count = has_rows ? plan.lists.kv_tiles : 0;
    const int masked = bounds_rows ? count : plan.lists.masked_tiles;
    plan.instead = count > 0 ? Tiles::Tile::none() : tile_behind(kv_len);
    plan.work.kv_tiles = max(count, 1);
    plan.work.masked_tiles = count > 0 ? masked : 1;
  }

  __forceinline__ void hand_over() const {
    if (leads()) arrive(shared_address(&shared_.control->plan_full[place_.stage()]));
  }

  // For the next plan.
  __forceinline__ void wait_until_asked() {
    const int stage = place_.stage();
    wait(shared_address(&shared_.control->plan_asked[stage]), place_.parity(),
         "being asked for a plan, stage", stage);
    place_.advance();
  }

  const ForwardArguments& arguments_;
  const SnippetArguments& call_;
  const Shared& shared_;
  PlaceInRing<kPlans> place_;
};

}  // namespace tw_kernel
