#pragma once

#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "mask/tile_range.hpp"
#include "snippet/snippets.hpp"

// Classifies one tile by evaluating mask_mod, by one warp: at a few elements first, then at all of
// them until one is kept and one is dropped.

namespace tw_kernel {

using tilewright::abi::SnippetArguments;

// prove.hpp. arguments: of a kernel, with the tables that proofs read; sequence: of a packed call, its
// SequenceRows
template <typename Arguments, typename... Sequence>
__noinline__ Proof prove(const Arguments& arguments, const SnippetArguments& call, RowPlace place,
                         TileRange range, const Sequence&... sequence);

// What is known of a tile's elements, the same in all lanes.
struct Kept {
  bool some;
  bool all;
  __forceinline__ bool is_partial() const { return some && !all; }
};

TW_INLINE Kept vote(bool some, bool all) {
  return {__any_sync(~0u, some) != 0, __all_sync(~0u, all) != 0};
}

TW_INLINE bool keeps(const tw_snippet::tw_State& state, const RowPlace& place,
                     const TileRange& tile, int row, int column) {
  return tw_snippet::tw_mask_mod(state, {}, place.b, place.h, place.h_kv, tile.first_q_idx + row,
                                 tile.first_kv_idx + column);
}

// The four corners and 28 more elements all over the tile: where a mask changes along a line or at
// a boundary between documents, they prove most partial tiles partial.
TW_INLINE Kept try_few(const tw_snippet::tw_State& state, const RowPlace& place,
                       const TileRange& tile, int lane) {
  const bool corner = lane < 4;
  const int row = corner ? lane / 2 * 31 : lane;
  const int column = corner ? lane % 2 * 31 : lane * 11 % 32;
  const bool keep =
      keeps(state, place, tile, row * (tile.rows - 1) / 31, column * (tile.columns - 1) / 31);
  return vote(keep, keep);
}

// Whether all elements of a tile are kept, or none. A lane looks at the same columns in every row;
// lanes past the end of a ragged tile look at its last column once more.
TW_INLINE bool all_are(bool kept, const tw_snippet::tw_State& state, const RowPlace& place,
                       const TileRange& tile, int lane) {
  constexpr int kRowsOfVote = 8;
#pragma unroll 1
  for (int first_row = 0; first_row < tile.rows; first_row += kRowsOfVote) {
    bool all = true;
    const int end_row = min(first_row + kRowsOfVote, tile.rows);
#pragma unroll 1
    for (int row = first_row; row < end_row; ++row) {
#pragma unroll 4
      for (int first = 0; first < kBlockKv; first += 32) {
        all &= keeps(state, place, tile, row, min(first + lane, tile.columns - 1)) == kept;
      }
    }
    if (!__all_sync(~0u, all)) return false;
  }
  return true;
}

TW_INLINE tw_snippet::tw_State state_of(const SnippetArguments& call) {
  return tw_snippet::tw_make_state(call);
}

// After a few elements, one truth is left to be looked for, in one loop for either, as the snippet
// takes long to compile wherever it stands. sequence: as prove's
template <typename... Sequence>
__noinline__ Kept evaluate_tile(const SnippetArguments& call, RowPlace place, TileRange tile,
                                const Sequence&... sequence) {
  const tw_snippet::tw_State state = state_of(call, sequence...);
  const int lane = threadIdx.x % 32;
  const Kept few = try_few(state, place, tile, lane);
  if (few.is_partial()) return few;
  const bool same = all_are(few.all, state, place, tile, lane);
  return {few.all || !same, few.all && same};
}

}  // namespace tw_kernel
