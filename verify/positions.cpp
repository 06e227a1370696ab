#include "verify/positions.hpp"

#include <cstddef>

#include "base/ceil_div.hpp"

namespace tilewright::verify {

std::vector<BlockMask::Tile> PositionTiles::tiles_of_row(std::int64_t h, std::int64_t row) const {
  const auto count = static_cast<std::size_t>(ceil_div(piece_.columns(), lists_.block()[1]));
  const std::int64_t q_idx = row + piece_.arguments.q_offset;
  const std::int64_t q_block = q_idx / lists_.block()[0];
  if (q_idx < 0 || q_block >= lists_.q_blocks())
    return std::vector<BlockMask::Tile>(count, BlockMask::Tile::empty);
  std::vector<BlockMask::Tile> tiles = lists_.row(0, lists_.heads() == 1 ? 0 : h, q_block);
  tiles.resize(count, BlockMask::Tile::empty);
  return tiles;
}

void PositionTiles::apply(std::int64_t h, std::int64_t row, unsigned char* keep) const {
  const std::vector<BlockMask::Tile> tiles = tiles_of_row(h, row);
  for (std::int64_t column = 0; column < piece_.columns(); ++column) {
    const BlockMask::Tile tile = tiles[static_cast<std::size_t>(column / lists_.block()[1])];
    if (tile != BlockMask::Tile::partial) keep[column] = tile == BlockMask::Tile::full ? 1 : 0;
  }
}

}  // namespace tilewright::verify
