#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/resident/items.hpp"
#include "cuda/hopper/resident/pipeline.hpp"
#include "cuda/hopper/resident/work.hpp"
#include "cuda/hopper/schedule.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/configuration.hpp"

// Which item comes next, and which of its tiles are wanted: looked up while units of the item before are brought.

namespace tw_kernel {

class ResidentPlanner {
 public:
  __forceinline__ ResidentPlanner(const ForwardArguments& arguments, const SnippetArguments& call,
                                  const Shared& shared)
      : arguments_(arguments), call_(call), shared_(shared), schedule_(arguments, call) {}

  // The next item, for all. Its heads are 0 where none is left.
  __forceinline__ const ResidentItem& next() {
    if (has_item_) {
      wait_until_asked();
      schedule_.advance();
    }
    ResidentItem& item = plan();
    while (!schedule_.done() && !make_plan(schedule_.number(), item)) schedule_.advance();
    has_item_ = !schedule_.done();
    if (!has_item_) item.heads = 0;
    hand_over();
    return item;
  }

 private:
  __forceinline__ ResidentItem& plan() const { return shared_.control->plan[place_.stage()]; }

  // Returns false where the item has no rows.
  __forceinline__ bool make_plan(unsigned number, ResidentItem& item) const {
    const auto of_sequence = static_cast<unsigned>(items_of_sequence(arguments_, call_));
    const auto b = static_cast<int>(number / of_sequence);
    const tilewright::abi::PlannedSequence& sequence = arguments_.plan.sequences[b];
    if (is_left_out(arguments_, call_, sequence)) return false;
    item.heads = arguments_.heads_in_group;
    QTile& q_tile = item.q_tile;
    q_tile.take(call_, sequence, b);
    q_tile.end_of_rows = sequence.q_len;
    q_tile.begin_in_block = q_tile.first_row = q_tile.mask_row = 0;
    q_tile.b = b;
    q_tile.h = static_cast<int>(number % of_sequence) * item.heads;
    q_tile.h_kv = q_tile.h / (call_.num_q_heads / call_.num_kv_heads);
    item.lead = sequence.lead;
    item.row_of_tiles = sequence.tile_row;
    item.units = (sequence.lead + sequence.q_len + kUnitRows - 1) / kUnitRows;
    item.kv_tiles = min((sequence.kv_len + kKvTile - 1) / kKvTile, kStages);
#pragma unroll 1
    for (int t = 0; t < kStages; ++t) item.needed_from[t] = first_unit_with(item, t);
    return true;
  }

  __forceinline__ int first_unit_with(const ResidentItem& item, int tile) const {
    if (tile >= item.kv_tiles) return ResidentItem::kUnneeded;
    if constexpr (!kMasked) return 0;
    const tilewright::abi::TileMap& map = arguments_.plan.map;
    const int lists = map.heads == 1 ? 1 : item.heads;
    const int blocks = (item.units + kUnitsOfBlock - 1) / kUnitsOfBlock;
    int first = ResidentItem::kUnneeded;
#pragma unroll 1
    for (int list = 0; list < lists; ++list) {
      const long long row = static_cast<long long>(map.heads == 1 ? 0 : item.q_tile.h + list) * map.rows +
                            item.row_of_tiles;
      const tilewright::abi::TileSpan* const spans = map.spans + row * map.spans_of_row;
#pragma unroll 2
      for (int block = 0; block < blocks; ++block) {
        const unsigned kept = __ldg(&spans[static_cast<long long>(block) * map.spans_of_row].kept);
        if ((kept >> tile / kTilesOfKvBlock & 1u) != 0) first = min(first, block * kUnitsOfBlock);
      }
    }
    return first;
  }

  __forceinline__ void hand_over() const { arrive(shared_address(&shared_.control->plan_full[place_.stage()])); }

  // For the next item.
  __forceinline__ void wait_until_asked() {
    const int stage = place_.stage();
    wait(shared_address(&shared_.control->plan_asked[stage]), place_.parity(), "being asked for a plan, stage",
         stage);
    place_.advance();
  }

  const ForwardArguments& arguments_;
  const SnippetArguments& call_;
  const Shared& shared_;
  Schedule schedule_;
  PlaceInRing<kPlans> place_;
  bool has_item_ = false;
};

}  // namespace tw_kernel
