#pragma once

#include <string>

#include "../runtime/api/block_mask.hpp"

namespace tilewright::picture {

struct TextOptions {
  int max_rows = 20;     ///< of cells; more rows of tiles are drawn together
  int max_columns = 40;  ///< likewise
  int max_lists = 4;     ///< of batches and heads that are drawn
  bool ascii = false;    ///< '#' and '+' in place of the blocks
};

/// A block mask as text, for terminals. A cell is two characters wide:
///
///     block mask: batch 1, heads 1, q_len 512, kv_len 512, tiles of 128 x 128
///     6 full, 4 partial, 6 empty; 62.5 % of the tiles are visited
///        kv 0    512
///     q   0 ░░
///       128 ██░░
///       256 ████░░
///       384 ██████░░
///     ██ full: every element is kept
///     ░░ partial: mask_mod decides
///     blank empty: skipped
///
/// The axes are labelled with q_idx and kv_idx, so offsets count. A cell that stands for several
/// tiles shows what the drawn pictures show (kind_of_cell).
std::string text_picture(const BlockMask& mask, const TextOptions& options = {});

}  // namespace tilewright::picture
