#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/place.hpp"
#include "cuda/decode/group_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Q of an item: the rows of q of the heads that share a head of k and v.

namespace tw_kernel {

// A row of q, counted from the sequence's first, of one of the group's heads; null after the last one.
TW_INLINE const QElement* find_q_row(const ForwardArguments& arguments, const Place& place, int q_row,
                                     int head_in_group) {
  if (q_row >= place.end_of_rows) return nullptr;
  return head_of<const QElement>(arguments.q, 0, place.h + head_in_group) +
         (place.q_begin() + q_row) * arguments.q.row_stride;
}

// Two neighbouring elements; zeros where there are none.
TW_INLINE unsigned load_pair(const QElement* row, int column) {
  if (row == nullptr || column >= kHeadDim) return 0;
  if (kAligned) return __ldg(reinterpret_cast<const unsigned*>(row + column));
  return row[column].bits | static_cast<unsigned>(row[column + 1].bits) << 16;
}

// In registers, straight from global memory. What is where is in ptx/mma.hpp.
class GroupQFragments {
 public:
  static constexpr int kSteps = kHeadPad / 16;

  __forceinline__ void load(const ForwardArguments& arguments, const Place& place,
                            const TileRows& rows, int, unsigned) {
    const QElement* const upper =
        find_q_row(arguments, place, rows.q_row[0], rows.head_in_group[0]);
    const QElement* const lower =
        find_q_row(arguments, place, rows.q_row[1], rows.head_in_group[1]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int column = step * 16 + static_cast<int>(lane() % 4 * 2);
      kept_[step][0] = load_pair(upper, column);
      kept_[step][1] = load_pair(lower, column);
      kept_[step][2] = load_pair(upper, column + 8);
      kept_[step][3] = load_pair(lower, column + 8);
    }
  }

  __forceinline__ void read(int step, unsigned (&q)[kRowTiles][4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) q[0][i] = kept_[step][i];
  }

 private:
  unsigned kept_[kSteps][4];
};

// In shared memory, [kQTile][kHeadPad], where all warps of the block read them.
class SharedGroupQ {
 public:
  static constexpr int kSteps = kHeadPad / 16;

  // By all threads of the block.
  __forceinline__ void load(const ForwardArguments& arguments, const Place& place,
                            const TileRows&, int group, unsigned tile) {
    __syncthreads();  // no warp reads the item before any more
#pragma unroll 1
    for (int id = threadIdx.x; id < kQTile * SharedTile<kHeadPad>::kChunks; id += kBlockThreads) {
      const int row = id / SharedTile<kHeadPad>::kChunks, chunk = id % SharedTile<kHeadPad>::kChunks;
      const QElement* const from = find_q_row(arguments, place, row / group, row % group);
      const int column = chunk * 8;
      store_shared_16(tile + SharedTile<kHeadPad>::offset(row, chunk), load_pair(from, column),
                      load_pair(from, column + 2), load_pair(from, column + 4),
                      load_pair(from, column + 6));
    }
    __syncthreads();  // Q is there
    tile_ = tile;
  }

  __forceinline__ void read(int step, unsigned (&q)[kRowTiles][4]) const {
    load_matrices(SharedTile<kHeadPad>::advance(q_fragment<kHeadPad>(tile_), step), q[0]);
  }

 private:
  unsigned tile_;
};

template <bool kInRegisters>
struct ItemQOf {
  using Type = GroupQFragments;
};
template <>
struct ItemQOf<false> {
  using Type = SharedGroupQ;
};
using ItemQ = ItemQOf<kQInRegisters>::Type;

}  // namespace tw_kernel
