#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/map_indices.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/q_producer.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"
#include "kernel/kv_boxes.hpp"
#include "kernel/tiles.hpp"

// The thread that brings tiles, or one of several: it runs ahead of the consumers as far as there are
// empty places.

namespace tw_kernel {

// K is one tile ahead of V. Where Q has two places, it stays ahead from one q tile to the next, whose Q and
// first K so come while the last V is waited for. Q's only place is empty only when that was used.
constexpr bool kCarriesV = kQStages > 1;

class Producer : QProducer {
 public:
  using QProducer::QProducer;

  __forceinline__ void run() {
    prefetch_maps();
#pragma unroll 1
    while (bring(next_plan())) place_.advance();
  }

 private:
  // That of the q tile before.
  __forceinline__ const TileRun& plan_before() const {
    const PlaceInRing<kPlans> plan = {place_again().count - 1};
    return shared_.control->plan[plan.stage()];
  }

  // False where there is no q tile left.
  __forceinline__ bool bring(TileRun& plan) {
    const QTile& q_tile = plan.work.q_tile;
    if (plan.work.kv_tiles == 0) {
      if (kCarriesV && place_.count > 0) load_v(tile_, plan_before().work.q_tile);
      end_ring(shared_.control->brought_k, k_place_, Loader::leads());
      end_ring(shared_.control->brought_v, v_place_, Loader::leads());
      if (Loader::leads()) {
        announce(plan.work);
        arrive(shared_address(&shared_.control->q_full[place_.q().stage()]));
      }
      return false;
    }
    Tiles tiles(plan.lists, q_tile.kv_len(call_));
    bool has_tile = true;
    // One loop for all of it: a copy of each step costs compile time.
#pragma unroll 1
    for (int i = 0;; ++i) {
      const Tiles::Tile before = tile_;
      if (has_tile) {
        tile_ = i == 0 && plan.instead.exists() ? plan.instead : tiles.next();
        load_k(tile_, q_tile);
      }
      if (i == 0 && Loader::leads()) {
        // K first: it finds an empty place before Q does.
        announce(plan.work);
        bring_q(q_tile);
      }
      if (i > 0 || (kCarriesV && place_.count > 0)) {
        load_v(before, i > 0 ? q_tile : plan_before().work.q_tile);
      }
      if (i == max(plan.work.kv_tiles - kLeftWhenAsking, 0)) ask_for_plan();
      if (!has_tile) break;
      has_tile = !Tiles::is_last(tile_, i, plan.work.kv_tiles);
      if (kCarriesV && !has_tile) break;
    }
    return true;
  }

  __forceinline__ void load_k(const Tiles::Tile& tile, const QTile& q_tile) {
    Control& control = *shared_.control;
    const int stage = k_place_.stage();
    const int b = batch_in(arguments_.k, q_tile);
    const int h = head_in(arguments_.k, q_tile.h_kv);
    const KvBox box = k_box(loader_, q_tile, q_tile.kv_len(call_), tile.first());
    const BroughtPlace to = place_of_k(shared_, stage);
    wait(shared_address(&to.empty), k_place_.parity() ^ 1, "an empty place for K, stage", stage);
    if (Loader::leads()) tile_in(control.brought_k, stage, control.kv_tile[stage]) = tile;
    box.load_k(to.tile, maps_, shared_address(&to.full), h, b);
    k_place_.advance();
  }

  __forceinline__ void load_v(const Tiles::Tile& tile, const QTile& q_tile) {
    Control& control = *shared_.control;
    const int stage = v_place_.stage();
    const int b = batch_in(arguments_.v, q_tile);
    const int h = head_in(arguments_.v, q_tile.h_kv);
    const KvBox box = v_box(loader_, q_tile, q_tile.kv_len(call_), tile.first());
    const BroughtPlace to = place_of_v(shared_, stage);
    wait(shared_address(&to.empty), v_place_.parity() ^ 1, "an empty place for V, stage", stage);
    box.load_v(to.tile, maps_, shared_address(&to.full), h, b);
    v_place_.advance();
  }

  Tiles::Tile tile_;  // the last one whose K was brought
  PlaceInRing<kPreparesK ? kBroughtStages : kStages> k_place_;  // of the next tile of K
  PlaceInRing<kPreparesV ? kBroughtStages : kStages> v_place_;  // of the next tile of V
};

}  // namespace tw_kernel
