#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/decode.hpp"
#include "abi/plan.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// The items of a packed call: a head of k and v of each sequence that the plan leaves to decode.

namespace tw_kernel {

using tilewright::abi::DecodeWork;

TW_INLINE const DecodeWork& work_of(const ForwardArguments& arguments) { return arguments.plan.decode; }

// Query heads of an item.
TW_INLINE int group_of_items(const ForwardArguments&, const SnippetArguments& call) {
  return call.num_q_heads / call.num_kv_heads;
}

// Sequences may have pages in common.
TW_INLINE bool may_share_rows(const ForwardArguments& arguments, const SnippetArguments&) {
  return arguments.plan.batch > 1;
}

class Items {
 public:
  __forceinline__ Items(const ForwardArguments& arguments, const SnippetArguments& call)
      : work_(arguments.plan.decode),
        entries_(arguments.plan.batch * arguments.plan.decode.lists),
        items_of_entry_(call.num_kv_heads / arguments.plan.decode.lists) {}

  // Entries are items that follow each other and have equally many units.
  __forceinline__ int entries() const { return entries_; }
  __forceinline__ int items_of_entry() const { return items_of_entry_; }
  __forceinline__ int units_before(int entry) const { return work_.units_before[entry]; }

  // item: of the entry
  __forceinline__ void name(int entry, int item, Segment& segment) const {
    segment.b = entry / work_.lists;
    segment.head = work_.lists == 1 ? item : entry % work_.lists;
  }

 private:
  const DecodeWork& work_;
  int entries_;
  int items_of_entry_;
};

// Where an item is. All of its rows of q are in the tile.
TW_INLINE QTile place_of_item(const ForwardArguments& arguments, const SnippetArguments& call,
                              const Segment& segment) {
  const tilewright::abi::PlannedSequence& sequence = arguments.plan.sequences[segment.b];
  QTile q_tile;
  q_tile.b = segment.b;
  q_tile.h_kv = segment.head;
  q_tile.h = segment.head * (call.num_q_heads / call.num_kv_heads);
  q_tile.take(call, sequence, segment.b);
  q_tile.end_of_rows = sequence.q_len;
  q_tile.begin_in_block = 0;
  q_tile.first_row = 0;
  q_tile.mask_row = sequence.tile_row;
  return q_tile;
}

// The batch of q and out that has the item's rows.
TW_INLINE int batch_of_rows(const QTile&) { return 0; }

}  // namespace tw_kernel
