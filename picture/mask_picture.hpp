#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../runtime/api/block_mask.hpp"
#include "mask_cells.hpp"

namespace tilewright::picture {

/// What a picture of a mask shows.
struct MaskPictureOptions {
  std::string title = "block mask";
  std::optional<std::int64_t> b = {};  ///< draw this batch alone
  std::optional<std::int64_t> h = {};  ///< draw this query head alone
  int max_lists = 16;                  ///< of batches and heads that are drawn next to each other
  /// How elements are read, where any are drawn.
  ReadElements read = {};
  /// Draw elements in place of tiles, for masks of up to kMaxElements x kMaxElements; needs `read`.
  bool elements = false;
  /// Draw a heat map of score_mod next to each list; needs `read`.
  bool scores = false;
  /// What score_mod was given, for the legend.
  double score = 1;
  /// Batches and heads that a heat map tells apart, where the mask has one list for all.
  std::int64_t batch = 1;
  std::int64_t heads = 1;
};

inline constexpr std::int64_t kMaxElements = 512;

/// A block mask as an SVG document: its tiles, full, partial and empty, over q_idx downwards and
/// kv_idx to the right, with counts and a legend. Tiles that would be too small share cells
/// (mask_cells.hpp).
/// @throws Error with code usage for a b or h that the mask does not have
std::string svg_picture(const BlockMask& mask, const MaskPictureOptions& options = {});

/// The same drawing as a PNG file, two pixels to a unit.
std::vector<std::byte> png_picture(const BlockMask& mask, const MaskPictureOptions& options = {});

}  // namespace tilewright::picture
