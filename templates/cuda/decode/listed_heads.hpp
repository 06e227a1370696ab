#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// The heads of an item of a dense call share its list of tiles.

namespace tw_kernel {

struct HeadTiles {
  __forceinline__ void drop(const QTile&, const int (&)[kRows], const KvTile&,
                            unsigned (&)[kRows]) const {}
};

TW_INLINE HeadTiles head_tiles(const ForwardArguments&) { return {}; }

}  // namespace tw_kernel
