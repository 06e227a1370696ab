#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/map_indices.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/boxes.hpp"
#include "kernel/configuration.hpp"
#include "kernel/kv_boxes.hpp"

// What producers have in common: they get plans, announce q tiles to the consumers and bring Q.

namespace tw_kernel {

// Tiles of K that are still to be brought when the next q tile is asked for. They take longer than
// planning it: four reads from global memory, each of which waits for the one before.
constexpr int kLeftWhenAsking = 3;

class QProducer {
 public:
  __forceinline__ QProducer(const ForwardArguments& arguments, const TensorMaps& maps,
                            const SnippetArguments& call, const Shared& shared)
      : arguments_(arguments), maps_(maps), call_(call), shared_(shared), loader_(arguments) {}

 protected:
  __forceinline__ void prefetch_maps() const {
    prefetch_map(maps_.q);
    prefetch_map(maps_.k);
    prefetch_map(maps_.v);
  }

  // It stays in shared memory, as the producer has few registers.
  __forceinline__ TileRun& next_plan() const {
    const PlaceInRing<kPlans> plan = place_.plan();
    wait(shared_address(&shared_.control->plan_full[plan.stage()]), plan.parity(), "a plan, stage",
         plan.stage());
    return shared_.control->plan[plan.stage()];
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

  __forceinline__ void bring_q(const QTile& q_tile) {
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

  // No tile comes any more to those that prepare them.
  template <typename RingPlace>
  static __forceinline__ void end_ring(BroughtRing<false>&, const RingPlace&, bool) {}
  static __forceinline__ void end_ring(BroughtRing<true>& ring, const PlaceInRing<kBroughtStages>& place, bool leads) {
    if (!Loader::speaks()) return;
    const int stage = place.stage();
    wait(shared_address(&ring.empty[stage]), place.parity() ^ 1, "an empty place for the end, stage", stage);
    if (leads) ring.is_end[stage] = true;
    arrive(shared_address(&ring.full[stage]));
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  const Loader loader_;
  QPlace place_;
};

}  // namespace tw_kernel
