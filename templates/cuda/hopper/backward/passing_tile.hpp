#pragma once

#include "cuda/tile/kv_tile.hpp"

namespace tw_kernel {

// A tile of rows of one query head, or the end.
struct PassingTile {
  KvTile rows;
  int h;
};

}  // namespace tw_kernel
