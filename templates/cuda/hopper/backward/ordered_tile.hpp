#pragma once

#include "cuda/tile/kv_tile.hpp"

namespace tw_kernel {

// A tile of rows of one query head, or the end.
struct PassingTile {
  KvTile rows;
  int h;
  int turn;  // blocks that add to its dQ before this one
};

}  // namespace tw_kernel
