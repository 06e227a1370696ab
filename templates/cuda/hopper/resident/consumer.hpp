#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/resident/pipeline.hpp"
#include "cuda/hopper/resident/tiles.hpp"
#include "cuda/hopper/resident/work.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/tile_visits.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"
#include "kernel/store_out.hpp"
#include "snippet/snippets.hpp"

// A warpgroup computes one unit after another, 64 rows of one head each, at its own pace: its softmax and its
// stores overlap the other warpgroups' products.

namespace tw_kernel {

class ResidentConsumer {
 public:
  __forceinline__ ResidentConsumer(const ForwardArguments& arguments, const TensorMaps& maps,
                                   const SnippetArguments& call, const Shared& shared, int number)
      : arguments_(arguments),
        maps_(maps),
        call_(call),
        shared_(shared),
        number_(number),
        q_(make_descriptor(shared.q(0, number), 0)),
        visits_(arguments, call, shared, number) {}

  __forceinline__ void run() {
#pragma unroll 1
    while (compute()) place_.advance();
    if (kStoresBoxes) wait_until_stores_read();
  }

 private:
  // The next unit. Returns false where none is left.
  __forceinline__ bool compute() {
    Control& control = *shared_.control;
    const int stage = place_.q().stage();
    wait(shared_address(&control.q_full[number_][stage]), place_.q().parity(), "Q, stage", stage);
    const Unit& unit = control.unit[number_][place_.announcement()];
    unsigned long long& q_empty = control.q_empty[number_][stage];
    const Unit::Kind kind = unit.kind;
    const TilesOfUnit tiles = unit.tiles;
    if (kind == Unit::Kind::end) return false;
    visits_.ring().begin(tiles);
    if (kind == Unit::Kind::none) {
      visits_.runs().give_back_stored();
      release(q_empty);
      return true;
    }
    const tw_snippet::tw_Loads head_loads = load_for_head(call_, unit.q_tile);
    const SnippetInputs inputs = snippet_inputs(call_, unit.q_tile, head_loads);
    visits_.scores().begin(inputs);

    Softmax softmax = start_softmax();
    float out[kRows][kOutColumns];  // not set: the first product ignores it
    QRows rows = {inputs, q_ + stage * (kConsumers * kQGroupBytes >> 4), q_empty, softmax, out};
    const RowEnds ends = visit_all(rows);
    visits_.runs().give_back_stored();  // where the unit has no tile
    store_out(arguments_, maps_, call_, shared_, unit.q_tile, stage, number_, ends, out);
    if (kOutOverQ && kStoresBoxes) visits_.runs().is_being_stored(q_empty);
    return true;
  }

  __forceinline__ RowEnds visit_all(QRows& rows) {
    ResidentTiles& tiles = visits_.ring();
    if (!tiles.has_tile()) {
      if (!kOutOverQ || !kStoresBoxes) release(rows.q_empty);
      return visits_.end(rows);
    }
    PendingTile before;
    bool has_before = false;
#pragma unroll 1
    do {
      const bool masked = tiles.masked();
      if (!kBoundsIndices || masked) {
        has_before |= visits_.template visit<!kBoundsIndices>(rows, masked, !has_before, has_before, before);
      } else {
        has_before |= visits_.template visit<true>(rows, false, false, has_before, before);
      }
    } while (tiles.has_tile());
    if (!kOutOverQ || !kStoresBoxes) release(rows.q_empty);
    return has_before ? visits_.finish(rows, before) : visits_.end(rows);
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  const int number_;
  const unsigned long long q_;  // of the first stage
  UnitPlace place_;
  TileVisits<ResidentTiles, TilesOneByOne> visits_;
};

}  // namespace tw_kernel
