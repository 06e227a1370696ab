#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/boxes.hpp"
#include "kernel/configuration.hpp"
#include "kernel/kv_boxes.hpp"
#include "kernel/tiles.hpp"

// The thread that brings tiles, or one of several: it runs ahead of the consumers as far as there are
// empty places.

namespace tw_kernel {

// Tiles of K that are still to be brought when the next q tile is asked for. They take longer than
// planning it: four reads from global memory, each of which waits for the one before.
constexpr int kLeftWhenAsking = 3;

// K is one tile ahead of V. Where Q has two places, it stays ahead from one q tile to the next, whose Q and
// first K so come while the last V is waited for. Q's only place is empty only when that was used.
constexpr bool kCarriesV = kQStages > 1;

class Producer {
 public:
  __forceinline__ Producer(const ForwardArguments& arguments, const TensorMaps& maps,
                           const SnippetArguments& call, const Shared& shared)
      : arguments_(arguments), maps_(maps), call_(call), shared_(shared), loader_(arguments) {}

  __forceinline__ void run() {
    prefetch_map(maps_.q);
    prefetch_map(maps_.k);
    prefetch_map(maps_.v);
#pragma unroll 1
    while (bring(next_plan())) place_.advance();
  }

 private:
  // It stays in shared memory, as the producer has few registers.
  __forceinline__ TileRun& next_plan() const {
    const PlaceInRing<kPlans> plan = place_.plan();
    wait(shared_address(&shared_.control->plan_full[plan.stage()]), plan.parity(), "a plan, stage",
         plan.stage());
    return shared_.control->plan[plan.stage()];
  }

  // That of the q tile before.
  __forceinline__ const TileRun& plan_before() const {
    const PlaceInRing<kPlans> plan = {place_again().count - 1};
    return shared_.control->plan[plan.stage()];
  }

  // False where there is no q tile left.
  __forceinline__ bool bring(TileRun& plan) {
    const QTile& q_tile = plan.work.q_tile;
    if (plan.work.kv_tiles == 0) {
      if (kCarriesV && place_.count > 0 && Loader::brings_v()) load_v(tile_, plan_before().work.q_tile);
      if (Loader::brings_k()) end_ring(shared_.control->brought_k, k_place_, Loader::leads());
      if (Loader::brings_v()) end_ring(shared_.control->brought_v, v_place_, Loader::leads_v());
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
        if (Loader::brings_k()) load_k(tile_, q_tile);
      }
      if (i == 0 && Loader::leads()) {
        // K first: it finds an empty place before Q does.
        announce(plan.work);
        load_q(q_tile);
      }
      if (Loader::brings_v() && (i > 0 || (kCarriesV && place_.count > 0))) {
        load_v(before, i > 0 ? q_tile : plan_before().work.q_tile);
      }
      if (i == max(plan.work.kv_tiles - kLeftWhenAsking, 0)) ask_for_plan();
      if (!has_tile) break;
      has_tile = !Tiles::is_last(tile_, i, plan.work.kv_tiles);
      if (kCarriesV && !has_tile) break;
    }
    return true;
  }

  // No tile comes any more to those that prepare them.
  template <typename RingPlace>
  static __forceinline__ void end_ring(BroughtRing<false>&, const RingPlace&, bool) {}
  static __forceinline__ void end_ring(BroughtRing<true>& ring, const PlaceInRing<kBroughtStages>& place, bool leads) {
    if (!Loader::speaks()) return;
    const int stage = place.stage();
    wait(shared_address(&ring.empty[stage]), place.parity() ^ 1, "an empty place for the end, stage", stage);
    if (leads) tell_end(ring, stage, true);
    arrive(shared_address(&ring.full[stage]));
  }

  __forceinline__ void ask_for_plan() const {
    if (!Loader::speaks()) return;
    arrive(shared_address(&shared_.control->plan_asked[place_.plan().stage()]));
  }

  // The place of the q tile, as if it were another each time: what follows from it is needed once, and
  // has no registers to stay in.
  __forceinline__ QPlace place_again() const {
    QPlace place = place_;
    asm volatile("" : "+r"(place.count));
    return place;
  }

  // After it there is an empty place for Q.
  __forceinline__ void announce(const WorkItem& work) {
    Control& control = *shared_.control;
    const QPlace place = place_again();
    const PlaceInRing<kQStages> q = place.q();
    wait(shared_address(&control.q_empty[q.stage()]), q.parity() ^ 1,
         "an empty place for Q, stage", q.stage());
    copy_in_pieces(work, control.work[place.work()]);
  }

  // A packed call's work has more words than the producer has registers left.
  static __forceinline__ void copy_in_pieces(const WorkItem& from, WorkItem& to) {
    constexpr int kWords = sizeof(WorkItem) / sizeof(int);
    constexpr int kMostAtOnce = 8;
    if constexpr (kWords <= kMostAtOnce) {
      to = from;
    } else {
      const int* const read = reinterpret_cast<const int*>(&from);
      int* const written = reinterpret_cast<int*>(&to);
#pragma unroll 5
      for (int i = 0; i < kWords; ++i) written[i] = read[i];
    }
  }

  __forceinline__ void load_q(const QTile& q_tile) {
    const int stage = place_again().q().stage();
    const unsigned full = shared_address(&shared_.control->q_full[stage]);
    const int b = batch_in(arguments_.q, q_tile);
    const int h = head_in(arguments_.q, q_tile.h);
    arrive_and_expect(full, kConsumers * kHeadPanels * kBoxBytes);
#pragma unroll
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
#pragma unroll
      for (int panel = 0; panel < kHeadPanels; ++panel) {
        load_rows(shared_.q(stage, consumer) + panel * kBoxBytes, maps_.q, full,
                  panel * panel_columns(kQBytes),
                  box_row(q_tile.q_begin(), q_tile.q_len(call_), q_tile.first_row + consumer * 64), h, b);
      }
    }
  }

  __forceinline__ void load_k(const Tiles::Tile& tile, const QTile& q_tile) {
    Control& control = *shared_.control;
    const int stage = k_place_.stage();
    const int b = batch_in(arguments_.k, q_tile);
    const int h = head_in(arguments_.k, q_tile.h_kv);
    const KvBox box = k_box(loader_, q_tile, q_tile.kv_len(call_), tile.first());
    const BroughtPlace to = place_of_k(shared_, stage);
    wait(shared_address(&to.empty), k_place_.parity() ^ 1, "an empty place for K, stage", stage);
    if (Loader::leads()) {
      tile_in(control.brought_k, stage, control.kv_tile[stage]) = tile;
      tell_end(control.brought_k, stage, false);
    }
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
    if (Loader::leads_v()) tell_end(control.brought_v, stage, false);
    box.load_v(to.tile, maps_, shared_address(&to.full), h, b);
    v_place_.advance();
  }

  // A dimension that is broadcast has extent 1 in its map.
  static __forceinline__ int batch_in(const TensorArgument& tensor, const QTile& q_tile) {
    return tensor.batch_stride == 0 ? 0 : q_tile.b;
  }
  static __forceinline__ int head_in(const TensorArgument& tensor, int h) {
    return tensor.head_stride == 0 ? 0 : h;
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  const Loader loader_;
  QPlace place_;
  Tiles::Tile tile_;  // the last one whose K was brought
  PlaceInRing<kPreparesK ? kBroughtStages : kStages> k_place_;  // of the next tile of K
  PlaceInRing<kPreparesV ? kBroughtStages : kStages> v_place_;  // of the next tile of V
};

}  // namespace tw_kernel
