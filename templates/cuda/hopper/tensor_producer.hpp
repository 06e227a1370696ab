#pragma once

#include "abi/pages.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/map_indices.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/q_producer.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"
#include "kernel/kv_boxes.hpp"
#include "kernel/tiles.hpp"

// A warp that brings tiles of K, and one that brings V's, each at its own pace. Both read shared memory between loads
// and stores of the warps that widen, where an answer takes hundreds of cycles: what all of a q tile's boxes have in
// common stays in registers, and a tile costs one access that is waited for.

namespace tw_kernel {

class Producer : QProducer {
 public:
  using QProducer::QProducer;

  __forceinline__ void run() {
    prefetch_maps();
    if (Loader::brings_k()) {
      bring_all<true>();
    } else {
      bring_all<false>();
    }
  }

 private:
  template <bool kIsK>
  __forceinline__ void bring_all() {
#pragma unroll 1
    while (bring<kIsK>(next_plan())) place_.advance();
  }

  // Returns false if no q tile is left.
  template <bool kIsK>
  __forceinline__ bool bring(TileRun& plan) {
    const QTile& q_tile = plan.work.q_tile;
    const int kv_tiles = plan.work.kv_tiles;
    if (kv_tiles == 0) {
      end<kIsK>(plan.work);
      return false;
    }
    const int kv_len = q_tile.kv_len(call_);
    const tilewright::abi::SequencePages pages = q_tile.pages;
    const int h = head_in(kIsK ? arguments_.k : arguments_.v, q_tile.h_kv);
    Tiles tiles(plan.lists, kv_len);
    bool is_last = false;
#pragma unroll 1
    for (int i = 0; !is_last; ++i) {
      const Tiles::Tile tile = i == 0 && plan.instead.exists() ? plan.instead : tiles.next();
      load<kIsK>(tile, pages, kv_len, h);
      if (kIsK && i == 0 && Loader::leads()) {
        // K first: it finds an empty place before Q does.
        announce(plan.work);
        bring_q(q_tile);
      }
      if (i == max(kv_tiles - kLeftWhenAsking, 0)) ask_for_plan();
      is_last = Tiles::is_last(tile, i, kv_tiles);
    }
    return true;
  }

  template <bool kIsK>
  __forceinline__ void load(const Tiles::Tile& tile, const tilewright::abi::SequencePages& pages, int kv_len, int h) {
    BroughtRing<true>& ring = ring_of<kIsK>();
    const KvBox box(pages, kIsK ? loader_.k_page_rows() : loader_.v_page_rows(), kv_len, tile.first());
    const int stage = tile_place_.stage();
    wait(shared_address(&ring.empty[stage]), tile_place_.parity() ^ 1, "an empty place for bytes, stage", stage);
    const unsigned full = shared_address(&ring.full[stage]);
    if constexpr (kIsK) {
      if (Loader::speaks()) ring.kv_tile[stage] = tile;
      box.load_k(shared_.brought_k(stage), maps_, full, h, 0);
    } else {
      box.load_v(shared_.brought_v(stage), maps_, full, h, 0);
    }
    tile_place_.advance();
  }

  template <bool kIsK>
  __forceinline__ void end(const WorkItem& no_work) {
    end_ring(ring_of<kIsK>(), tile_place_, true);
    if (!kIsK || !Loader::leads()) return;
    announce(no_work);
    arrive(shared_address(&shared_.control->q_full[place_.q().stage()]));
  }

  template <bool kIsK>
  __forceinline__ BroughtRing<true>& ring_of() const {
    return kIsK ? shared_.control->brought_k : shared_.control->brought_v;
  }

  PlaceInRing<kBroughtStages> tile_place_;  // of the next tile
};

}  // namespace tw_kernel
