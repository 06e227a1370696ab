#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "../runtime/api/block_mask.hpp"
#include "parts.hpp"

namespace tilewright::verify {

/// What lists over positions keep of one sequence, read apart from the runtime's own reading.
class PositionTiles {
 public:
  /// Both must outlive this.
  PositionTiles(const BlockMask& lists, const Parts::Piece& piece) : lists_(lists), piece_(piece) {}

  /// The state of each of the sequence's tiles for one of its rows.
  std::vector<BlockMask::Tile> tiles_of_row(std::int64_t h, std::int64_t row) const;

  /// Drops elements outside of listed tiles, and keeps all of full ones.
  /// @param keep [columns of the sequence] what mask_mod keeps of the row
  void apply(std::int64_t h, std::int64_t row, unsigned char* keep) const;

 private:
  const BlockMask& lists_;
  const Parts::Piece& piece_;
};

}  // namespace tilewright::verify
