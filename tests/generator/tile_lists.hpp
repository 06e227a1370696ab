#pragma once

#include <algorithm>
#include <random>
#include <vector>

// The lists of one row of a block mask, as the tests of the kernels' walks over them make them.
namespace tile_lists {

struct Tile {
  int first;  // kv row
  bool partial;
  bool operator==(const Tile&) const = default;
};

// Blocks of row 1; those of row 0 stand before them.
struct Lists {
  std::vector<long long> offsets = {0, 3};
  std::vector<int> blocks = {5, 6, 7};

  void end_row() { offsets.push_back(static_cast<long long>(blocks.size())); }
  const int* begin() const { return blocks.data() + offsets[1]; }
  const int* end() const { return blocks.data() + blocks.size(); }
};

struct RandomRow {
  Lists partial;
  Lists full;
};

// In every third round blocks of all kinds, in the others partial ones alone and full ones alone.
inline RandomRow random_row(std::mt19937& random, int round, int kv_blocks) {
  RandomRow row;
  for (int block = 0; block < kv_blocks; ++block) {
    const int kind = round % 3 == 0 ? static_cast<int>(random() % 3u) : round % 3;
    if (kind == 1) row.partial.blocks.push_back(block);
    if (kind == 2) row.full.blocks.push_back(block);
  }
  row.partial.end_row();
  row.full.end_row();
  return row;
}

// The tiles of a list's blocks that begin before kv_len, from the first to the last.
inline void append_tiles(const Lists& lists, int block_kv, int kv_tile, int kv_len, bool partial,
                         std::vector<Tile>& tiles) {
  for (const int block : lists) {
    const int first = block * block_kv;
    for (int row = first; row < std::min(first + block_kv, kv_len); row += kv_tile) {
      tiles.push_back({row, partial});
    }
  }
}

}  // namespace tile_lists
