#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/decode/group_rows.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/decode_items.hpp"
#include "kernel/engine.hpp"

// Q of an item: the rows of q of its heads.

namespace tw_kernel {

// A row of q, counted from the sequence's first, of one of the group's heads; null after the last one.
TW_INLINE const QElement* find_q_row(const ForwardArguments& arguments, const SnippetArguments& call,
                                     const QTile& q_tile, int q_row, int head_in_group) {
  if (q_row >= q_tile.q_len(call)) return nullptr;
  return head_of<const QElement>(arguments.q, batch_of_rows(q_tile), q_tile.h + head_in_group) +
         (q_tile.q_begin() + q_row) * arguments.q.row_stride;
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

  __forceinline__ void load(const ForwardArguments& arguments, const SnippetArguments& call,
                            const QTile& q_tile, const TileRows& rows, int, unsigned) {
    const QElement* const upper =
        find_q_row(arguments, call, q_tile, rows.q_row[0], rows.head_in_group[0]);
    const QElement* const lower =
        find_q_row(arguments, call, q_tile, rows.q_row[1], rows.head_in_group[1]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const auto quad = static_cast<int>(lane() % 4);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = q_pair_column(step, half, quad);
        kept_[step][2 * half] = load_pair(upper, column);
        kept_[step][2 * half + 1] = load_pair(lower, column);
      }
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
  __forceinline__ void load(const ForwardArguments& arguments, const SnippetArguments& call,
                            const QTile& q_tile, const TileRows&, int group, unsigned tile) {
    __syncthreads();  // no warp reads the item before any more
#pragma unroll 1
    for (int id = threadIdx.x; id < kQTile * SharedTile<kHeadPad>::kChunks; id += kBlockThreads) {
      const int row = id / SharedTile<kHeadPad>::kChunks, chunk = id % SharedTile<kHeadPad>::kChunks;
      const QElement* const from = find_q_row(arguments, call, q_tile, row / group, row % group);
      const int column = kQInOrder ? chunk * 8 : q_pair_column(chunk / 2, chunk % 2, 0);
      constexpr int kStep = kQInOrder ? 2 : 4;
      store_shared_16(tile + SharedTile<kHeadPad>::offset(row, chunk), load_pair(from, column),
                      load_pair(from, column + kStep), load_pair(from, column + 2 * kStep),
                      load_pair(from, column + 3 * kStep));
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
