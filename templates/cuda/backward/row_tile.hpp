#pragma once

#include "kernel/configuration.hpp"

// One tile of rows of q that passes by a block's own rows of packed k and v, in two registers.

namespace tw_kernel {

// What the map says of a sequence's kv block in a row of tiles.
enum RowState : unsigned { kNoRow = 0, kPartialRow = 1, kFullRow = 3 };

// Which own rows are columns of the sequence: from `begin` to before `end`; those from `split` on, if it
// is not 0, are of its next kv block.
struct OwnRange {
  int begin;
  int end;
  int split;
};

class RowTile {
 public:
  RowTile() = default;
  static __forceinline__ RowTile none() { return RowTile(-1, 0); }
  // count: rows that exist of the tile, 1 to kKvTile
  __forceinline__ RowTile(int first, int count, const OwnRange& own, unsigned state, unsigned next_state)
      : RowTile(first, state | next_state << 2 | static_cast<unsigned>(count) << 4 |
                           static_cast<unsigned>(own.begin) << 11 |
                           static_cast<unsigned>(own.end - 1) << 18 |
                           static_cast<unsigned>(own.split) << 25) {}

  __forceinline__ bool exists() const { return first_ >= 0; }
  __forceinline__ int first() const { return first_; }
  __forceinline__ int end() const { return first_ + static_cast<int>(code_ >> 4 & 127u); }

  // Of an own row: its RowState.
  __forceinline__ unsigned state_of(int row) const {
    const auto begin = static_cast<int>(code_ >> 11 & 127u), last = static_cast<int>(code_ >> 18 & 127u);
    const auto split = static_cast<int>(code_ >> 25);
    if (row < begin || row > last) return kNoRow;
    return code_ >> (split != 0 && row >= split ? 2 : 0) & 3u;
  }
  // Whether all own rows are full.
  __forceinline__ bool is_full() const {
    constexpr unsigned kWhole = static_cast<unsigned>(kQTile - 1) << 18;
    const bool has_all = (code_ & 0x1fff800u) == kWhole;
    const bool is_split = code_ >> 25 != 0;
    return has_all && (code_ & (is_split ? 15u : 3u)) == (is_split ? 15u : 3u);
  }

 private:
  __forceinline__ RowTile(int first, unsigned code) : first_(first), code_(code) {}

  int first_;
  unsigned code_;  // both states, rows, and the own range in 7 bits each
};
static_assert(kQTile <= 128 && kKvTile <= 127, "7 bits hold a row");

}  // namespace tw_kernel
