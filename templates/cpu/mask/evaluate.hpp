#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"
#include "kernel/configuration.hpp"
#include "mask/tile_range.hpp"
#include "snippet/snippets.hpp"

// Classifies one tile of a block mask by evaluating mask_mod: at a few elements first, which settle
// most partial tiles, then at all of them until one is kept and one is dropped.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;
using tilewright::abi::TileState;

// What is known of a tile's elements.
struct Kept {
  bool some;
  bool all;
  TW_MEMBER bool is_partial() const { return some && !all; }
};

using ColumnLoads = tw_snippet::tw_LaneLoads<kBlockKv>;

TW_INLINE bool keeps(const tw_snippet::tw_State& state, const ColumnLoads& columns,
                     const RowPlace& place, const TileRange& tile, int row, int column) {
  const int q_idx = tile.first_q_idx + row;
  const tw_snippet::tw_Loads shared =
      tw_snippet::tw_load_shared(state, place.b, place.h, place.h_kv, q_idx, 0);
  return tw_snippet::tw_mask_mod(state, columns.with_lane(shared, column), place.b, place.h,
                                 place.h_kv, q_idx, tile.first_kv_idx + column);
}

// The four corners and four elements inside.
TW_INLINE Kept try_few(const tw_snippet::tw_State& state, const ColumnLoads& columns,
                       const RowPlace& place, const TileRange& tile) {
  Kept kept = {false, true};
#pragma GCC unroll 1
  for (int i = 0; i < 8 && !kept.is_partial(); ++i) {
    const int row = i < 4 ? i / 2 * 7 : i;
    const int column = i < 4 ? i % 2 * 7 : i * 3 % 8;
    const bool keep = keeps(state, columns, place, tile, row * (tile.rows - 1) / 7,
                            column * (tile.columns - 1) / 7);
    kept = {kept.some || keep, kept.all && keep};
  }
  return kept;
}

// How many elements of a row are kept. Lanes are columns here.
TW_INLINE int count_kept(const tw_snippet::tw_State& state, const ColumnLoads& columns,
                         const RowPlace& place, int q_idx, int first_kv_idx, int count) {
  const tw_snippet::tw_Loads row =
      tw_snippet::tw_load_shared(state, place.b, place.h, place.h_kv, q_idx, 0);
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    const tw_snippet::tw_Loads loads = columns.with_lane(row, i);
    kept += tw_snippet::tw_mask_mod(state, loads, place.b, place.h, place.h_kv, q_idx,
                                    first_kv_idx + i)
                ? 1
                : 0;
  }
  return kept;
}

TW_NOINLINE TileState evaluate_tile(const tw_snippet::tw_State& state, const RowPlace& place,
                                    const TileRange& tile) {
  ColumnLoads columns;
  for (int i = 0; i < tile.columns; ++i) {
    columns.load(i, state, place.b, place.h, place.h_kv, 0, tile.first_kv_idx + i);
  }
  Kept kept = try_few(state, columns, place, tile);
  for (int row = 0; row < tile.rows && !kept.is_partial(); ++row) {
    const int count = count_kept(state, columns, place, tile.first_q_idx + row, tile.first_kv_idx,
                                 tile.columns);
    kept = {kept.some || count != 0, kept.all && count == tile.columns};
  }
  return kept.is_partial() ? tilewright::abi::kTilePartial
         : kept.some       ? tilewright::abi::kTileFull
                           : tilewright::abi::kTileEmpty;
}

}  // namespace tw_kernel
