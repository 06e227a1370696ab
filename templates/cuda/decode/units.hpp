#pragma once

#include "abi/tile_map.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"

// Units of decode work: columns that a block of threads works on side by side, of one tile of the tile map
// where there is one.

namespace tw_kernel {

using tilewright::abi::TileMap;
using tilewright::abi::TileSpan;

constexpr int units_of_columns(int columns) {
  return (columns + kDecodeColumns - 1) / kDecodeColumns;
}
constexpr int kUnitsOfTile = units_of_columns(kBlockKv);

// Heads of the tile map that the query heads of an item have.
struct HeadsOfList {
  int first;
  int count;  // 1 where all share theirs
};

// lists: DecodeWork::lists
TW_INLINE HeadsOfList heads_of_list(const TileMap& map, int num_q_heads, int list, int lists) {
  if (map.heads == 1) return {0, 1};
  const int group = num_q_heads / lists;
  return {list * group, group};
}

// What any of the heads keeps. A tile that only some of them keep is partial.
// tile_row: of the sequence in the rows of a head
TW_INLINE TileSpan read_span(const TileMap& map, const HeadsOfList& heads, int tile_row, int span) {
  const TileSpan* at =
      map.spans +
      (static_cast<long long>(heads.first) * map.rows + tile_row) * map.spans_of_row + span;
  TileSpan any = {__ldcg(&at->kept), __ldcg(&at->partial)};
  unsigned all = any.kept;
#pragma unroll 1
  for (int i = 1; i < heads.count; ++i) {
    at += static_cast<long long>(map.rows) * map.spans_of_row;
    const unsigned kept = __ldcg(&at->kept);
    any.kept |= kept;
    any.partial |= __ldcg(&at->partial);
    all &= kept;
  }
  any.partial |= any.kept & ~all;
  return any;
}

}  // namespace tw_kernel
