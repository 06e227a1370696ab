#pragma once

#include <optional>

#include "block_mask.hpp"
#include "tensor.hpp"

namespace tilewright {

// Block masks from lists that others made, and lists for others. All tensors lie on the host; the
// tiles of a list are numbered as in BlockMask. `fingerprint` is Attention::mask_fingerprint of the
// call; the mask gets the batch and heads that its lists have.

/// Lists as FlexAttention's BlockMask holds them: padded to a common width, of which each row uses
/// its first `num_blocks`. Integers are i32 or i64.
struct FlexTileLists {
  TensorView kv_num_blocks;  ///< [batch or 1, num_q_heads or 1, q_blocks]: of partial tiles
  TensorView kv_indices;     ///< [batch or 1, num_q_heads or 1, q_blocks, width]
  std::optional<TensorView> full_kv_num_blocks = {};  ///< of full tiles, likewise; both or none
  std::optional<TensorView> full_kv_indices = {};
};

/// A row may name its tiles in any order. Which tiles are full is believed: mask_mod is not asked
/// there.
/// @throws Error with code block_mask for the first entry that is out of range or named twice, or
///         for a tile that is partial and full; with code tensor for a wrong dtype or shape, or
///         for more than 2^31 - 1 rows of tiles
BlockMask block_mask_from_flex(MaskFingerprint fingerprint, const FlexTileLists& lists);

/// FlexAttention's four tensors, i32 [batch, heads, q_blocks] and [batch, heads, q_blocks,
/// kv_blocks].
struct FlexTensors {
  Tensor kv_num_blocks;
  Tensor kv_indices;
  Tensor full_kv_num_blocks;
  Tensor full_kv_indices;

  FlexTileLists view() const;
};

/// What create_block_mask would hold for this mask, entry by entry: unused ones name the other
/// columns, and ragged tiles at the ends of q_len and kv_len are never full there.
/// @throws Error with code memory
FlexTensors to_flex(const BlockMask& mask);

/// A user's tiles as CSR. Integers are i32 or i64.
struct TileCsr {
  /// [q_blocks + 1] shared by all, [num_q_heads or 1, q_blocks + 1], or
  /// [batch or 1, num_q_heads or 1, q_blocks + 1]. Each list starts at 0.
  TensorView crow;
  /// kv blocks, rising in each row: [n], the lists one after another, or with the leading
  /// dimensions of crow, each list padded to n.
  TensorView col;
};

/// The tiles are partial where the spec has a mask_mod, which then decides in them, and full where
/// it has none.
/// @throws Error with code block_mask for the first entry that is wrong, with its row and position;
///         with code tensor for a wrong dtype or shape, or for more than 2^31 - 1 rows of tiles
BlockMask block_mask_from_csr(MaskFingerprint fingerprint, const TileCsr& tiles);

}  // namespace tilewright
