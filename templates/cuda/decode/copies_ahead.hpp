#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/decode.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/decode/streamed_rows.hpp"
#include "cuda/decode/work_range.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/decode_items.hpp"
#include "kernel/engine.hpp"
#include "kernel/kv_rows.hpp"
#include "kernel/load.hpp"
#include "kernel/unit_tiles.hpp"

// K and V of a warp's tiles, copied kStages tiles before they are used, whatever item they are of.

namespace tw_kernel {

// What a warp works on: a segment of an item, and where its tensors are.
struct WarpItem {
  HeadPointers head;
  Segment segment;
};

// What is on its way to a warp, in shared memory. Each tile may be of another item.
struct Announced {
  static constexpr int kItems = kStages + 1;  // one is used while kStages tiles are on their way
  KvTile tiles[kStages];
  WarpItem items[kItems];
};
TW_INLINE int next_item(int item) {
  return item == Announced::kItems - 1 ? 0 : item + 1;
}

// A call reads each row of K and V once, unless items share rows. With evict_first these lines do not evict dirty
// lines, whose write-back would compete with the reads. Measured on an H200: up to 7 % faster up to 256 MiB. From
// 512 MiB on any policy costs 7 % of the time, evict_normal too.
constexpr long long kMostBytesThatGoFirst = 256 << 20;
TW_INLINE bool lines_go_first(const ForwardArguments& arguments, const SnippetArguments& call,
                              const tilewright::abi::UnitCuts& cuts) {
  constexpr long long kUnitBytes = kDecodeColumns * (kHeadDim + kValueDim) * static_cast<int>(sizeof(KvElement));
  return !may_share_rows(arguments, call) && cuts.units * kUnitBytes <= kMostBytesThatGoFirst;
}

class CopiesAhead {
 public:
  __forceinline__ CopiesAhead(const ForwardArguments& arguments, const SnippetArguments& call,
                              Announced& announced, unsigned ring, int team)
      : arguments_(arguments),
        call_(call),
        announced_(announced),
        ring_(ring),
        team_(team),
        range_(arguments, call),
        lines_go_first_(lines_go_first(arguments, call, range_.cuts())) {}

  // Asks for the next tile, and makes it a group of copies; without a tile the group is empty. No lane
  // reads the tile's place in the ring any more. After the last item one without units is announced.
  __forceinline__ void ask() {
    if (left_ > 0 || find_item()) {
      const KvTile tile = walk_.tile();
      if (lane() == 0) announced_.tiles[stage_] = tile;
      if (tile.exists()) copy(tile);
      walk_.advance();
      if (--left_ > 0) find_next();
    }
    commit_copies();
    stage_ = stage_ == kStages - 1 ? 0 : stage_ + 1;
  }

  __forceinline__ const tilewright::abi::UnitCuts& cuts() const { return range_.cuts(); }

 private:
  // Whether there is one more.
  __forceinline__ bool find_item() {
    if (has_ended_) return false;
    Segment segment = {};
    has_ended_ = !range_.take(segment);
    item_ = next_item(item_);
    if (lane() == 0) {
      WarpItem& item = announced_.items[item_];
      item.segment = segment;
      if (!has_ended_) {
        const QTile q_tile = place_of_item(arguments_, call_, segment);
        item.head = {q_tile, find_kv(k_of(arguments_), q_tile), find_kv(v_of(arguments_), q_tile)};
      }
    }
    if (has_ended_) return false;
    __syncwarp();  // the item is there
    walk_.begin(arguments_, call_, head().q_tile, segment, team_);
    left_ = segment.count;
    find_next();
    return true;
  }

  __forceinline__ const HeadPointers& head() const { return announced_.items[item_].head; }

  // A page's number is looked up a tile before it is needed.
  __forceinline__ void find_next() {
    const KvTile tile = walk_.tile();
    if (tile.exists()) found_ = find_tile(head().q_tile, tile.first());
  }

  __forceinline__ void copy(const KvTile& tile) const {
    const int first = tile.first(), count = head().q_tile.kv_len(call_) - first;
    const unsigned k = ring_ + stage_ * (kKBytes + kVBytes);
    load_found(found_, head().k, k_of(arguments_), head().q_tile, first, count,
               [&](const auto& rows, int existing) {
                 load_k(k, StreamedRows(rows, lines_go_first_), existing);
               });
    load_found(found_, head().v, v_of(arguments_), head().q_tile, first, count,
               [&](const auto& rows, int existing) {
                 load_v(k + kKBytes, StreamedRows(rows, lines_go_first_), existing);
               });
  }

  const ForwardArguments& arguments_;
  const SnippetArguments& call_;
  Announced& announced_;
  unsigned ring_;
  int team_;
  WorkRange range_;
  bool lines_go_first_;
  UnitTiles walk_;
  FoundTile found_;  // of the next tile
  int left_ = 0;   // units of the item
  int stage_ = 0;  // of the ring, that is filled next
  int item_ = Announced::kItems - 1;
  bool has_ended_ = false;
};

}  // namespace tw_kernel
