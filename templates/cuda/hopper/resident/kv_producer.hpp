#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/map_indices.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/resident/pipeline.hpp"
#include "cuda/hopper/resident/planner.hpp"
#include "cuda/hopper/resident/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/configuration.hpp"
#include "kernel/kv_boxes.hpp"

// The thread that plans items, and brings K and V of each, the last tile first: its place is empty first.

namespace tw_kernel {

class ResidentKvProducer {
 public:
  __forceinline__ ResidentKvProducer(const ForwardArguments& arguments, const TensorMaps& maps,
                                     const SnippetArguments& call, const Shared& shared)
      : arguments_(arguments),
        maps_(maps),
        call_(call),
        shared_(shared),
        loader_(arguments),
        planner_(arguments, call, shared) {}

  __forceinline__ void run() {
    prefetch_map(maps_.k);
    prefetch_map(maps_.v);
#pragma unroll 1
    while (bring(planner_.next()));
  }

 private:
  // Returns false where no item is left.
  __forceinline__ bool bring(const ResidentItem& item) {
    if (item.heads == 0) return false;
    const unsigned brought = item.brought();
#pragma unroll 1
    for (int t = kStages - 1; t >= 0; --t) {
      if ((brought >> t & 1u) != 0) load(item.q_tile, t);
    }
    return true;
  }

  __forceinline__ void load(const QTile& q_tile, int t) {
    Control& control = *shared_.control;
    const unsigned parity = (phases_ >> t & 1u) ^ 1u;
    phases_ ^= 1u << t;
    const int kv_len = q_tile.kv_len(call_);
    const KvBox k = k_box(loader_, q_tile, kv_len, t * kKvTile);
    wait(shared_address(&control.k_empty[t]), parity, "an empty place for K, tile", t);
    k.load_k(shared_.k(t), maps_, shared_address(&control.k_full[t]), head_in(arguments_.k, q_tile.h_kv),
             batch_in(arguments_.k, q_tile));
    const KvBox v = v_box(loader_, q_tile, kv_len, t * kKvTile);
    wait(shared_address(&control.v_empty[t]), parity, "an empty place for V, tile", t);
    v.load_v(shared_.v(t), maps_, shared_address(&control.v_full[t]), head_in(arguments_.v, q_tile.h_kv),
             batch_in(arguments_.v, q_tile));
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared& shared_;
  const Loader loader_;
  ResidentPlanner planner_;
  unsigned phases_ = 0;  // bit t: the parity of the phase in which place t becomes full next
};

}  // namespace tw_kernel
