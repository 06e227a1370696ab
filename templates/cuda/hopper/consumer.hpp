#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/hopper/kv_ring.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/tile_visits.hpp"
#include "cuda/hopper/warpgroup_order.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"
#include "kernel/joined_rows.hpp"
#include "kernel/store_out.hpp"
#include "snippet/snippets.hpp"

// A warpgroup that computes 64 rows of each q tile.

namespace tw_kernel {

template <typename Runs>
class Consumer {
 public:
  __forceinline__ Consumer(const ForwardArguments& arguments, const TensorMaps& maps,
                           const SnippetArguments& call, const Shared& shared, int number)
      : arguments_(arguments),
        maps_(maps),
        call_(call),
        shared_(shared),
        number_(number),
        q_(make_descriptor(shared.q(0, number), 0)),
        visits_(arguments, call, shared, number) {}

  __forceinline__ void run() {
    WarpgroupOrder::start(number_);
#pragma unroll 1
    while (compute()) q_place_.advance();
    if (kStoresBoxes) wait_until_stores_read();
  }

 private:
  // The next q tile. False where there is none left.
  __forceinline__ bool compute() {
    Control& control = *shared_.control;
    const int q_stage = q_place_.q().stage();
    wait(shared_address(&control.q_full[q_stage]), q_place_.q().parity(), "Q, stage", q_stage);
    const WorkItem& work = control.work[q_place_.work()];
    if (work.kv_tiles == 0) return false;
    const bool has_rows = work.q_tile.first_row + number_ * 64 < work.q_tile.q_len(call_);
    if (!has_rows) {
      visits_.ring().pass_by_all(work.kv_tiles);
      release(control.q_empty[q_stage]);
      return true;
    }
    const tw_snippet::tw_Loads head_loads = load_for_head(call_, work.q_tile);
    const SnippetInputs inputs = snippet_inputs(call_, work.q_tile, head_loads);
    visits_.scores().begin(inputs);

    Softmax softmax = start_softmax();
    float out[kRows][kOutColumns] = {};
    QRows rows = {inputs, q_ + q_stage * (kConsumers * kQGroupBytes >> 4), control.q_empty[q_stage], softmax, out};
    RowEnds ends = visits_.runs().visit_all(visits_, rows, work);
    if (join_parts(arguments_, call_, work, number_, visits_.scores(), inputs, softmax, out, ends)) {
      store_out(arguments_, maps_, call_, shared_, work.q_tile, q_stage, number_, ends, out);
    }
    if (kOutOverQ && kStoresBoxes) release(rows.q_empty);
    return true;
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  const int number_;
  const unsigned long long q_;  // of the first stage
  QPlace q_place_;
  TileVisits<KvRing, Runs> visits_;
};

}  // namespace tw_kernel
