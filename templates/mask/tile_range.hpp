#pragma once

// What a block mask's tiles are asked about, on every device: by evaluation and by intervals.

namespace tw_kernel {

// The elements of one or more tiles, as they are numbered in the call.
struct TileRange {
  int first_q_idx;
  int rows;
  int first_kv_idx;
  int columns;
};

// What is the same for all tiles of a row.
struct RowPlace {
  int b;
  int h;
  int h_kv;
};

// What intervals say of a range of tiles: prove.hpp.
enum class Proof { empty, full, undecided };

}  // namespace tw_kernel
