#pragma once

#include "cuda/hopper/work.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// A kv tile of a q tile that covers rows of two blocks of the mask, with what either row has of it.

namespace tw_kernel {

static_assert(kQTile == kBlockQ + 64, "a q tile covers rows of two blocks");
static_assert(kBlockQ % 64 == 0, "a warpgroup's rows lie in one block");

// In a register, as KvTile. row: 0 or 1, of the mask's that the q tile covers.
class TwoBlockTile {
 public:
  TwoBlockTile() = default;
  static __forceinline__ TwoBlockTile none() { return TwoBlockTile(~0u); }
  // Past the last tile; it has no elements in either row.
  static __forceinline__ TwoBlockTile sentinel(int first) { return {first, 0}; }

  __forceinline__ TwoBlockTile(int first, unsigned states)
      : code_(static_cast<unsigned>(first) / kStep << kBits | states) {}

  // The caller combines both rows' with `|`.
  static __forceinline__ unsigned states(int row, TileState state) {
    return static_cast<unsigned>(state) << row * kBitsOfRow;
  }

  __forceinline__ bool exists() const { return code_ != ~0u; }
  // Its first kv row.
  __forceinline__ int first() const { return static_cast<int>((code_ >> kBits) * kStep); }
  __forceinline__ unsigned states() const { return code_ % (1u << kBits); }
  __forceinline__ TileState state(int row) const { return at(row * kBitsOfRow); }
  // Of the tile that is visited next.
  __forceinline__ TileState state_in_next(int row) const { return at(row * kBitsOfRow + kNext); }
  __forceinline__ bool is_last() const { return (code_ & kBothInNext) == 0; }

  __forceinline__ TwoBlockTile followed_by(TwoBlockTile next) const {
    return TwoBlockTile(next.exists() ? code_ | next.states() << kNext : code_);
  }

 private:
  static constexpr int kNext = 2;       // bits of a state; the next tile's state follows
  static constexpr int kBitsOfRow = 4;  // two states
  static constexpr int kBits = 2 * kBitsOfRow;
  static constexpr unsigned kBothInNext = 0xcc;
  static constexpr unsigned kStep = 128;  // so that first / kStep and the states have 32 bits together
  static_assert(kKvTile % kStep == 0, "a tile begins at a multiple of kStep");

  explicit __forceinline__ TwoBlockTile(unsigned code) : code_(code) {}
  __forceinline__ TileState at(int bit) const { return static_cast<TileState>(code_ >> bit & 3u); }

  unsigned code_;  // first / kStep, and states; all ones: no tile
};

// As a row sees it.
TW_INLINE KvTile as_kv_tile(TwoBlockTile tile, int row) {
  return {tile.first(), tile.state(row) == TileState::partial};
}

}  // namespace tw_kernel
