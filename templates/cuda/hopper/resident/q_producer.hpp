#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/tile_map.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/map_indices.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/resident/pipeline.hpp"
#include "cuda/hopper/resident/work.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/boxes.hpp"
#include "kernel/configuration.hpp"
#include "kernel/unit_proofs.hpp"
#include "mask/tile_range.hpp"

// The thread that tells one warpgroup of its units, every kConsumers-th of all items', and brings their Q.

namespace tw_kernel {

class ResidentQProducer {
 public:
  // number: of the warpgroup
  __forceinline__ ResidentQProducer(const ForwardArguments& arguments, const TensorMaps& maps,
                                    const SnippetArguments& call, const Shared& shared, int number)
      : arguments_(arguments), maps_(maps), call_(call), shared_(shared), number_(number), items_(shared) {}

  __forceinline__ void run() {
    prefetch_map(maps_.q);
#pragma unroll 1
    while (bring(items_.next())) items_.advance();
    announce_without_rows(Unit::Kind::end, 0);
  }

 private:
  // Units that are still to be brought when the next item is asked for. Planning it takes three reads from global
  // memory, each of which waits for the one before.
  static constexpr int kLeftWhenAsking = 4;

  // A unit of an item: the number among its head's, and the head among the item's.
  struct Step {
    int unit, head;

    // Those after it in the order of units.
    __forceinline__ Step after(int steps, int heads) const {
      Step step = {unit, head + steps};
#pragma unroll 1
      while (step.head >= heads) {
        step.head -= heads;
        --step.unit;
      }
      return step;
    }
  };

  // Returns false where no item is left.
  __forceinline__ bool bring(const ResidentItem& item) {
    if (item.heads == 0) return false;
    const int all = (item.units - item.first_unit()) * item.heads;
    const int first = (number_ + kConsumers - next_group_) % kConsumers;  // of its units
    const int own = (all - first + kConsumers - 1) / kConsumers;
    next_group_ = (next_group_ + all) % kConsumers;
    unsigned held = item.brought();
    if (own <= 0) {
      items_.ask();
      announce_without_rows(Unit::Kind::none, held);
      return true;
    }
    Step step = Step{item.units - 1, 0}.after(first, item.heads);
#pragma unroll 1
    for (int left = own; left > 0; --left) {
      if (left == min(own, kLeftWhenAsking)) items_.ask();
      const Step next = step.after(kConsumers, item.heads);
      const unsigned needed = left > 1 ? item.needed_up_to(next.unit) : 0;
      bring_unit(item, step, held & ~needed);
      held &= needed;
      step = next;
    }
    return true;
  }

  __forceinline__ void bring_unit(const ResidentItem& item, const Step& step, unsigned released) {
    const int first_row = max(step.unit * kUnitRows - item.lead, 0);
    QTile q_tile = item.q_tile;
    q_tile.h += step.head;
    q_tile.first_row = first_row - number_ * kUnitRows;
    q_tile.end_of_rows = min((step.unit + 1) * kUnitRows - item.lead, q_tile.end_of_rows);
    TilesOfUnit tiles = find_tiles(item, step.unit, q_tile, first_row);
    tiles.released = static_cast<unsigned char>(released);
    Unit& unit = wait_for_place();
    unit.q_tile = q_tile;
    unit.kind = Unit::Kind::rows;
    unit.tiles = tiles;
    load(unit.q_tile, first_row);
    place_.advance();
  }

  // q_tile: the unit's
  __forceinline__ TilesOfUnit find_tiles(const ResidentItem& item, int number, const QTile& q_tile,
                                         int first_row) const {
    const unsigned all = (1u << item.kv_tiles) - 1;
    unsigned kept = all, partial = 0;
    if (kMasked) {
      const tilewright::abi::TileMap& map = arguments_.plan.map;
      const long long row = static_cast<long long>(map.heads == 1 ? 0 : q_tile.h) * map.rows + item.row_of_tiles +
                            number / kUnitsOfBlock;
      const tilewright::abi::TileSpan& span = map.spans[row * map.spans_of_row];
      kept &= tiles_of_blocks(__ldg(&span.kept));
      partial = kept & tiles_of_blocks(__ldg(&span.partial));
      prove_tiles(q_tile, first_row, kept, partial);
    }
    const int kv_len = q_tile.kv_len(call_);
    const unsigned ragged = kv_len % kKvTile != 0 ? 1u << kv_len / kKvTile : 0;
    const bool lacks_rows = kBoundsIndices && q_tile.q_len(call_) - first_row < kUnitRows;
    return {.kept = static_cast<unsigned char>(kept),
            .partial = static_cast<unsigned char>(partial),
            .masked = static_cast<unsigned char>(lacks_rows ? all : partial | ragged),
            .released = 0};
  }

  // Tiles of blocks that the mask decides over may be empty or full themselves.
  __forceinline__ void prove_tiles(const QTile& q_tile, int first_row, unsigned& kept, unsigned& partial) const {
    if (!kProvesTiles) return;
#pragma unroll 1
    for (unsigned left = partial; left != 0; left &= left - 1) {
      const Proof proof =
          prove_tile(call_, q_tile, first_row, q_tile.q_len(call_) - first_row, __ffs(static_cast<int>(left)) - 1);
      const unsigned bit = left & -left;
      if (proof != Proof::undecided) partial ^= bit;
      if (proof == Proof::empty) kept ^= bit;
    }
  }

  // Bits of blocks of the mask become bits of their tiles.
  static __forceinline__ unsigned tiles_of_blocks(unsigned blocks) {
    if (kTilesOfKvBlock == 1) return blocks;
    unsigned tiles = 0;
#pragma unroll
    for (int t = 0; t < kStages; ++t) tiles |= (blocks >> t / kTilesOfKvBlock & 1u) << t;
    return tiles;
  }

  // For the next unit: Q's place and its announcement's are empty then.
  __forceinline__ Unit& wait_for_place() const {
    Control& control = *shared_.control;
    const PlaceInRing<kQStages> q = place_.q();
    wait(shared_address(&control.q_empty[number_][q.stage()]), q.parity() ^ 1, "an empty place for Q, stage",
         q.stage());
    return control.unit[number_][place_.announcement()];
  }

  __forceinline__ void announce_without_rows(Unit::Kind kind, unsigned released) {
    Unit& unit = wait_for_place();
    unit.kind = kind;
    unit.tiles = {.kept = 0, .partial = 0, .masked = 0, .released = static_cast<unsigned char>(released)};
    arrive(shared_address(&shared_.control->q_full[number_][place_.q().stage()]));
    place_.advance();
  }

  __forceinline__ void load(const QTile& q_tile, int first_row) const {
    const int stage = place_.q().stage();
    const unsigned full = shared_address(&shared_.control->q_full[number_][stage]);
    const int b = batch_in(arguments_.q, q_tile), h = head_in(arguments_.q, q_tile.h);
    arrive_and_expect(full, kHeadPanels * kBoxBytes);
#pragma unroll
    for (int panel = 0; panel < kHeadPanels; ++panel) {
      load_rows(shared_.q(stage, number_) + panel * kBoxBytes, maps_.q, full, panel * panel_columns(kQBytes),
                box_row(q_tile.q_begin(), q_tile.q_len(call_), first_row), h, b);
    }
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared& shared_;
  const int number_;
  int next_group_ = 0;  // the warpgroup that has an item's first unit: they go on in turn from item to item
  ItemReader items_;
  UnitPlace place_;
};

}  // namespace tw_kernel
