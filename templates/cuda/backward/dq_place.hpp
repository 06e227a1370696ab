#pragma once

#include "cuda/language.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Where sums of dQ lie in memory. A tile of rows is cut into parts of 16 rows and 8 columns, which follow each
// other along rows: the accumulators of one product of a warp (mma.hpp). A part lies as a warp adds it, so that
// each add of a warp is to consecutive floats.

namespace tw_kernel {

#if __CUDA_ARCH__ >= 900
constexpr bool kAddsFours = true;  // a lane's four accumulators lie together
#else
constexpr bool kAddsFours = false;  // each accumulator has the warp's lanes together
#endif

constexpr int kDqPartFloats = 16 * 8;
constexpr int kDqPartsOfRow = KeyTile::kPad / 8;
constexpr int kDqTileFloats = kKvTile * KeyTile::kPad;

// From the tile's first float. row_part: 16 rows; column_part: 8 columns
TW_INLINE constexpr int dq_part(int row_part, int column_part) {
  return (row_part * kDqPartsOfRow + column_part) * kDqPartFloats;
}

// Where a lane adds its accumulator, from the part's first float.
TW_INLINE constexpr int dq_place(int lane, int accumulator) {
  return kAddsFours ? lane * 4 + accumulator : accumulator * 32 + lane;
}

TW_INLINE int dq_tiles_of_head(int q_len) { return (q_len + kKvTile - 1) / kKvTile; }

}  // namespace tw_kernel
