#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/resident/work.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "mask/prove_range.hpp"
#include "mask/tile_range.hpp"
#include "snippet/proved.hpp"

// What intervals say of the mask on a unit's rows and one tile's columns, which are less than a block of the mask.

namespace tw_kernel {

constexpr bool kProvesTiles = kBlockQ > kUnitRows || kBlockKv > kKvTile;

// rows: of the unit, from first_row on
TW_INLINE Proof prove_tile(const SnippetArguments& call, const QTile& q_tile, int first_row, int rows, int tile) {
  if (!kProvesTiles) return Proof::undecided;
  const int column = tile * kKvTile;
  const TileRange range = {first_row + q_tile.q_offset(call), rows, column + q_tile.kv_offset(call),
                           min(kKvTile, q_tile.kv_len(call) - column)};
  return prove_range(tw_proved::tw_make_state(call, {}, q_tile.rows), {q_tile.b, q_tile.h, q_tile.h_kv}, range);
}

}  // namespace tw_kernel
