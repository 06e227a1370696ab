#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/head_groups.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/sequence.hpp"

// The q tiles of a dense call, by their numbers. Within a group of heads the costliest q tiles come first, so that no
// long tile is left to the end.

namespace tw_kernel {

TW_INLINE int mask_rows_before(const BlockMaskArguments& mask, int b, int h) {
  const int mask_b = mask.batch == 1 ? 0 : b;
  const int mask_h = mask.heads == 1 ? 0 : h;
  return (mask_b * mask.heads + mask_h) * mask.q_blocks;
}

// Q tiles of all heads.
TW_INLINE unsigned count_q_tiles(const ForwardArguments& arguments, const SnippetArguments& call) {
  return static_cast<unsigned>(arguments.q_tiles * call.batch * call.num_q_heads);
}

// What says which kv tiles a q tile visits.
TW_INLINE const BlockMaskArguments& tile_source(const ForwardArguments& arguments) {
  return arguments.mask;
}

// number: of the q tile among all of the call's.
TW_INLINE QTile find_q_tile(const ForwardArguments& arguments, const SnippetArguments& call,
                           unsigned number) {
  const PlaceInGroups place = place_in_groups(number, arguments.q_tiles, arguments.heads_in_group,
                                              arguments.whole_groups, call.batch * call.num_q_heads);
  const int head = place.head, rank = place.item;

  QTile q_tile;
  q_tile.b = head / call.num_q_heads;
  q_tile.h = head - q_tile.b * call.num_q_heads;
  q_tile.h_kv = q_tile.h / (call.num_q_heads / call.num_kv_heads);
  q_tile.mask_row = 0;
  int tile = arguments.q_tiles - 1 - rank;
  if (kMasked) {
    constexpr int kTilesOfBlock = kSpansTwoBlocks ? 1 : kBlockQ / kQTile;
    q_tile.mask_row = mask_rows_before(arguments.mask, q_tile.b, q_tile.h);
    if (arguments.mask.q_tile_order != nullptr) {
      const int row = arguments.mask.q_tile_order[q_tile.mask_row + rank / kTilesOfBlock];
      tile = row * kTilesOfBlock + rank % kTilesOfBlock;
    }
    q_tile.mask_row += kSpansTwoBlocks ? tile * kQTile / kBlockQ : tile / kTilesOfBlock;
  }
  q_tile.first_row = tile * kQTile;
  return q_tile;
}

}  // namespace tw_kernel
