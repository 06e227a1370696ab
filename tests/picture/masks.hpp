#pragma once

#include <functional>

#include "runtime/api/block_mask.hpp"

namespace tilewright::test {

/// A block mask of which every tile is what a function says.
inline BlockMask make_mask(const Shape& shape, std::array<std::int64_t, 2> block,
                           const std::function<BlockMask::Tile(std::int64_t list, std::int64_t q,
                                                               std::int64_t kv)>& tile) {
  TileLists lists{.row_offsets = {0}, .indices = {}, .full_row_offsets = {0}, .full_indices = {}};
  const std::int64_t q_blocks = (shape.q_len + block[0] - 1) / block[0];
  const std::int64_t kv_blocks = (shape.kv_len + block[1] - 1) / block[1];
  for (std::int64_t list = 0; list < shape.batch * shape.num_q_heads; ++list) {
    for (std::int64_t q = 0; q < q_blocks; ++q) {
      for (std::int64_t kv = 0; kv < kv_blocks; ++kv) {
        const BlockMask::Tile kind = tile(list, q, kv);
        if (kind == BlockMask::Tile::empty) continue;
        const bool full = kind == BlockMask::Tile::full;
        (full ? lists.full_indices : lists.indices).push_back(static_cast<std::int32_t>(kv));
      }
      lists.row_offsets.push_back(static_cast<std::int64_t>(lists.indices.size()));
      lists.full_row_offsets.push_back(static_cast<std::int64_t>(lists.full_indices.size()));
    }
  }
  MaskFingerprint fingerprint;
  fingerprint.source = {.mask_mod = "q_idx >= kv_idx", .block = block, .scalars = {}};
  fingerprint.shape = shape;
  return BlockMask(fingerprint, std::move(lists), "exact", 0);
}

/// Causal: full below the diagonal, partial on it.
inline BlockMask causal_mask(std::int64_t length, std::int64_t side, std::int64_t heads = 1) {
  return make_mask({.num_q_heads = heads, .num_kv_heads = heads, .q_len = length, .kv_len = length},
                   {side, side}, [](std::int64_t, std::int64_t q, std::int64_t kv) {
                     return q > kv    ? BlockMask::Tile::full
                            : q == kv ? BlockMask::Tile::partial
                                      : BlockMask::Tile::empty;
                   });
}

}  // namespace tilewright::test
