#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/decode.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/decode/units.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// The items of a dense call: a head of k and v of each batch, or a query head where the block mask tells
// heads apart, as the lists of several heads differ. The mask's offsets say how many tiles are listed before
// each of its rows, so nothing has to be counted.

namespace tw_kernel {

using tilewright::abi::DecodeWork;

TW_INLINE const DecodeWork& work_of(const ForwardArguments& arguments) { return arguments.decode; }

TW_INLINE bool items_are_query_heads(const ForwardArguments& arguments) {
  return kMasked && arguments.mask.heads > 1;
}

// Query heads of an item.
TW_INLINE int group_of_items(const ForwardArguments& arguments, const SnippetArguments& call) {
  return items_are_query_heads(arguments) ? 1 : call.num_q_heads / call.num_kv_heads;
}

// Query heads of one group read the same rows. All batches read the same rows of a broadcast K.
TW_INLINE bool may_share_rows(const ForwardArguments& arguments, const SnippetArguments& call) {
  return items_are_query_heads(arguments) || (call.batch > 1 && arguments.k.batch_stride == 0);
}

class Items {
 public:
  __forceinline__ Items(const ForwardArguments& arguments, const SnippetArguments& call)
      : mask_(arguments.mask),
        kv_len_(call.kv_len),
        heads_(items_are_query_heads(arguments) ? call.num_q_heads : call.num_kv_heads),
        entries_(kMasked ? arguments.mask.batch * arguments.mask.heads : 1),
        items_of_entry_(call.batch * heads_ / entries_) {}

  // Entries are items that follow each other and have equally many units: those that share a row of the mask.
  __forceinline__ int entries() const { return entries_; }
  __forceinline__ int items_of_entry() const { return items_of_entry_; }

  // A listed tile has all of its units, also those after kv_len. An item has one unit more, so that its rows
  // are stored where no tile is listed.
  __forceinline__ int units_before(int entry) const {
    if (!kMasked) return entry * items_of_entry_ * units_of_columns(kv_len_);
    const long long tiles = __ldg(mask_.row_offsets + entry) - __ldg(mask_.row_offsets) +
                            __ldg(mask_.full_row_offsets + entry) - __ldg(mask_.full_row_offsets);
    return (static_cast<int>(tiles) * kUnitsOfTile + entry) * items_of_entry_;
  }

  // item: of the entry
  __forceinline__ void name(int entry, int item, Segment& segment) const {
    if (!has_own_lists()) {
      segment.b = item / heads_;
      segment.head = item % heads_;
      return;
    }
    const int list_b = entry / mask_.heads, list_h = entry % mask_.heads;
    segment.b = mask_.batch == 1 ? item : list_b;
    segment.head = mask_.heads == 1 ? item : list_h;
  }

 private:
  // Whether the mask has a list for each batch or head.
  __forceinline__ bool has_own_lists() const {
    return kMasked && (mask_.batch > 1 || mask_.heads > 1);
  }

  const BlockMaskArguments& mask_;
  int kv_len_;
  int heads_;  // items of a batch
  int entries_;
  int items_of_entry_;
};

// Where an item is. All of its rows of q are in the tile, and of one row of the mask's tiles.
TW_INLINE QTile place_of_item(const ForwardArguments& arguments, const SnippetArguments& call,
                              const Segment& segment) {
  const int group = call.num_q_heads / call.num_kv_heads;
  const BlockMaskArguments& mask = arguments.mask;
  QTile q_tile;
  q_tile.b = segment.b;
  q_tile.h = items_are_query_heads(arguments) ? segment.head : segment.head * group;
  q_tile.h_kv = q_tile.h / group;
  q_tile.first_row = 0;
  q_tile.mask_row = 0;
  if (kMasked) {
    q_tile.mask_row = (mask.batch == 1 ? 0 : q_tile.b) * mask.heads + (mask.heads == 1 ? 0 : q_tile.h);
  }
  return q_tile;
}

// The batch of q and out that has the item's rows.
TW_INLINE int batch_of_rows(const QTile& q_tile) { return q_tile.b; }

}  // namespace tw_kernel
