#pragma once

#include "abi/plan.hpp"
#include "abi/tile_map.hpp"
#include "cuda/backward/row_tile.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// The tiles that a block's rows meet by the tile map of a plan; all of a sequence without one.

namespace tw_kernel {

using tilewright::abi::kTilesOfSpan;
using tilewright::abi::TileSpan;

// Tiles of columns, for a block that owns rows of q.
class MappedColumns {
 public:
  using Tile = KvTile;
  struct Cursor {
    int spans = 0;  // that have been read
    int tile = 0;   // of the kv block
    TileSpan left = {0, 0};
  };

  MappedColumns() = default;
  __forceinline__ MappedColumns(const TileSpan* row, int kv_len) : row_(row), kv_len_(kv_len) {}

  // The tiles one after another, and then none.
  __forceinline__ KvTile next(Cursor& cursor) const {
    if (!kMasked) {
      const int first = cursor.tile++ * kKvTile;
      return first < kv_len_ ? KvTile(first, false) : KvTile::none();
    }
    const auto spans = static_cast<int>(tilewright::abi::spans_of_columns(kv_len_, kBlockKv));
#pragma unroll 1
    while (cursor.left.kept == 0) {
      if (cursor.spans >= spans) return KvTile::none();
      cursor.left = {__ldg(&row_[cursor.spans].kept), __ldg(&row_[cursor.spans].partial)};
      ++cursor.spans;
    }
    const int bit = __ffs(cursor.left.kept) - 1;
    const int first = ((cursor.spans - 1) * kTilesOfSpan + bit) * kBlockKv + cursor.tile * kKvTile;
    const KvTile tile(first, (cursor.left.partial >> bit & 1u) != 0);
    const bool is_last = cursor.tile + 1 == kBlockKv / kKvTile || first + kKvTile >= kv_len_;
    cursor.tile = is_last ? 0 : cursor.tile + 1;
    if (is_last) cursor.left.kept &= cursor.left.kept - 1;
    return tile;
  }

 private:
  const TileSpan* row_;
  int kv_len_;
};

// Tiles of rows of q, for a block that owns rows of packed k and v.
class MappedRows {
 public:
  using Tile = RowTile;
  struct Cursor {
    int block = 0;
    int tile = 0;  // of the row of tiles
  };

  MappedRows() = default;
  // spans: the map's row of the sequence's first row of tiles
  // first_column: of the own rows, which may be negative
  __forceinline__ MappedRows(const TileSpan* spans, int spans_of_row,
                             const tilewright::abi::TiledSequence& sequence, int first_column)
      : spans_(spans), spans_of_row_(spans_of_row), q_len_(sequence.q_len), lead_(sequence.lead) {
    own_.begin = max(-first_column, 0);
    own_.end = min(kQTile, sequence.kv_len - first_column);
    kv_block_ = (first_column + own_.begin) / kBlockKv;
    const int split = (kv_block_ + 1) * kBlockKv - first_column;
    own_.split = kMasked && split < own_.end ? split : 0;
  }

  // The tiles one after another, and then none.
  __forceinline__ RowTile next(Cursor& cursor) const {
    if (!kMasked) {
      const int first = cursor.tile++ * kKvTile;
      if (first >= q_len_) return RowTile::none();
      return RowTile(first, min(kKvTile, q_len_ - first), own_, kFullRow, kFullRow);
    }
    const int blocks = tilewright::abi::count_q_blocks(q_len_, lead_, kBlockQ);
#pragma unroll 1
    for (; cursor.block < blocks; ++cursor.block, cursor.tile = 0) {
      const unsigned state = state_of(cursor.block, kv_block_);
      const unsigned next = own_.split != 0 ? state_of(cursor.block, kv_block_ + 1) : 0;
      if ((state | next) == 0) continue;
      const tilewright::abi::RowsOfTiles rows =
          tilewright::abi::rows_of_tiles(q_len_, lead_, cursor.block, kBlockQ);
      const int first = rows.begin + cursor.tile * kKvTile;
      if (first >= rows.end) continue;
      ++cursor.tile;
      return RowTile(first, min(kKvTile, rows.end - first), own_, state, next);
    }
    return RowTile::none();
  }

 private:
  __forceinline__ unsigned state_of(int q_block, int kv_block) const {
    const TileSpan* const span =
        spans_ + static_cast<long long>(q_block) * spans_of_row_ + kv_block / kTilesOfSpan;
    const int bit = kv_block % kTilesOfSpan;
    if ((__ldg(&span->kept) >> bit & 1u) == 0) return kNoRow;
    return (__ldg(&span->partial) >> bit & 1u) != 0 ? kPartialRow : kFullRow;
  }

  const TileSpan* spans_;
  int spans_of_row_;
  int q_len_;
  int lead_;
  int kv_block_;  // of the first own row that is a column
  OwnRange own_;
};

TW_INLINE bool has_own_row(const RowTile& tile, int i) { return tile.state_of(row_of(i)) != kNoRow; }
TW_INLINE bool is_partial(const RowTile& tile, int i) {
  return tile.state_of(row_of(i)) == kPartialRow;
}
TW_INLINE bool drops_elements(const RowTile& tile) { return !tile.is_full(); }
TW_INLINE int end_of_rows(const RowTile& tile, int) { return tile.end(); }

}  // namespace tw_kernel
