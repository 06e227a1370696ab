#pragma once

#include <cstdint>
#include <optional>

#include "block_mask.hpp"

namespace tilewright {

/// Some rows of a mask, for a call that has only those: a step of decoding, a chunk of a prompt.
struct RowSlice {
  std::int64_t first_row = 0;
  std::int64_t rows = 1;
  std::optional<std::int64_t> kv_len = {};  ///< only the first columns; none: all of them
};

/// The mask for a call with q_len = rows and q_offset = that of the mask + first_row. Nothing is
/// evaluated, so the slice is right but may visit more than a mask that was built for the call: a
/// tile that is partial in the whole stays partial, and rows that begin inside a tile join the
/// tiles above and below.
/// @throws Error with code usage for rows that the mask does not have, and where mask_mod reads
///         q_len (or kv_len, if that changes), which would mean something else in the slice
BlockMask slice_rows(const BlockMask& mask, const RowSlice& slice);

}  // namespace tilewright
