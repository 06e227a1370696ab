#pragma once

#include "cuda/backward/dq_place.hpp"
#include "cuda/backward/sweep.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/half_weights.hpp"
#include "cuda/ptx/add_float.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/mma.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/thread.hpp"
#include "cuda/tile/shared_tile.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// dQ where a block owns columns: the warps bring dX of their columns together in shared memory, and each multiplies
// a part of the tile's rows and of the columns of K. What comes of it is added to the sums of all blocks.
//
//   dQ[q][d] += sum over the own columns of dX[kv][q] K[kv][d]

namespace tw_kernel {

// Steps of 16 along the tile's rows and along the columns of K, and how warps share them: each has the fewest
// products, then the fewest loads.
constexpr int kDqRowSteps = kKvTile / 16;
constexpr int kDqColumnSteps = KeyTile::kPad / 16;

TW_INLINE constexpr int dq_column_steps(int row_warps) {
  const int column_warps = kWarps / row_warps;
  return (kDqColumnSteps + column_warps - 1) / column_warps;
}
TW_INLINE constexpr int dq_cost(int row_warps) {
  const int rows = kDqRowSteps / row_warps, columns = dq_column_steps(row_warps);
  return rows * columns * 64 + rows + columns;
}
TW_INLINE constexpr int choose_dq_row_warps() {
  int best = 1;
  for (int warps = 2; warps <= kWarps; ++warps) {
    if (kWarps % warps == 0 && kDqRowSteps % warps == 0 && dq_cost(warps) < dq_cost(best)) best = warps;
  }
  return best;
}

constexpr int kDqRowWarps = choose_dq_row_warps();
constexpr int kDqWarpRows = kDqRowSteps / kDqRowWarps;  // steps of a warp
constexpr int kDqWarpColumns = dq_column_steps(kDqRowWarps);

constexpr bool kIsUneven = kWarps / kDqRowWarps * kDqWarpColumns > kDqColumnSteps;  // some warps have less

using KTile = SharedTile<KeyTile::kPad>;
using DxTile = SharedTile<kKvTile>;  // [own columns][the tile's rows]

class AddedDq {
 public:
  static constexpr bool kAdds = true;

  AddedDq() = default;
  // sums: of all heads; null where dQ is not wanted. own_left: how many of the own columns exist
  __forceinline__ AddedDq(float* sums, int own_left) : sums_(sums), own_left_(own_left) {}

  __forceinline__ AddedDq of_head(const SnippetArguments& call, int b, int h) const {
    if (sums_ == nullptr) return *this;
    const long long head = static_cast<long long>(b) * call.num_q_heads + h;
    return {sums_ + head * dq_tiles_of_head(call.q_len) * kDqTileFloats, own_left_};
  }

  __forceinline__ void stage(const SweepMemory& memory, const Weights& dx) const {
    if (own_left_ >= kQTile) {
      stage_rows<false>(memory, dx);
    } else {
      stage_rows<true>(memory, dx);
    }
  }

  // dX of all columns has been staged.
  __forceinline__ void add(const SweepMemory& memory, int first_row) const {
    if (sums_ == nullptr) return;
    const int warp = static_cast<int>(thread_number<kThreads>() / 32);
    const int row_step = warp % kDqRowWarps * kDqWarpRows, column_step = warp / kDqRowWarps * kDqWarpColumns;
    if (kIsUneven && column_step >= kDqColumnSteps) return;
    float dq[kDqWarpRows][kDqWarpColumns][8];
    multiply(memory, row_step, column_step, dq);
    const int parts = first_row / 16 * kDqPartsOfRow;
    add_parts(sums_ + static_cast<long long>(parts) * kDqPartFloats, row_step, column_step, dq);
  }

 private:
  // Columns that do not exist count as 0, whatever came of their rows of zeros.
  template <bool kClears>
  __forceinline__ void stage_rows(const SweepMemory& memory, const Weights& dx) const {
    const unsigned to = memory.dx() + DxTile::offset(row_of(0), 0) + lane() % 4 * 4;
    const bool has[2] = {row_of(0) < own_left_, row_of(1) < own_left_};
#pragma unroll
    for (int step = 0; step < kKvTile / 16; ++step) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const unsigned at = DxTile::advance(k < 2 ? to : to ^ 16, step) + k % 2 * 8 * DxTile::kRowBytes;
        store_shared(at, __uint_as_float(!kClears || has[k % 2] ? dx.fragment[step][0][k] : 0));
      }
    }
  }

  static __forceinline__ void multiply(const SweepMemory& memory, int row_step, int column_step,
                                       float (&dq)[kDqWarpRows][kDqWarpColumns][8]) {
    unsigned dx_rows[kDqWarpRows], k_rows[kDqWarpColumns];
#pragma unroll
    for (int i = 0; i < kDqWarpRows; ++i) {
      dx_rows[i] = memory.dx() + DxTile::offset(lane() % 8 + lane() / 16 * 8, 2 * (row_step + i) + lane() / 8 % 2);
    }
#pragma unroll
    for (int j = 0; j < kDqWarpColumns; ++j) {
      k_rows[j] = memory.own_keys() + KTile::offset(lane() % 16, 2 * (column_step + j) + lane() / 16);
    }
#pragma unroll
    for (int i = 0; i < kDqWarpRows * kDqWarpColumns * 8; ++i) {
      dq[i / 8 / kDqWarpColumns][i / 8 % kDqWarpColumns][i % 8] = 0.0f;
    }
#pragma unroll
    for (int own = 0; own < kQTile / 16; ++own) {
      unsigned dx[kDqWarpRows][4];
#pragma unroll
      for (int i = 0; i < kDqWarpRows; ++i) {
        load_matrices_transposed(dx_rows[i] + own * 16 * DxTile::kRowBytes, dx[i]);
      }
#pragma unroll
      for (int j = 0; j < kDqWarpColumns; ++j) {
        unsigned k[4];
        load_matrices_transposed(k_rows[j] + own * 16 * KTile::kRowBytes, k);
#pragma unroll
        for (int i = 0; i < kDqWarpRows; ++i) {
          float(&x)[8] = dq[i][j];
          multiply_add<QElement>(x[0], x[1], x[2], x[3], dx[i], k[0], k[1]);
          multiply_add<QElement>(x[4], x[5], x[6], x[7], dx[i], k[2], k[3]);
        }
      }
    }
  }

  static __forceinline__ void add_parts(float* tile, int row_step, int column_step,
                                        const float (&dq)[kDqWarpRows][kDqWarpColumns][8]) {
    float* const first = tile + dq_part(row_step, 2 * column_step) + dq_place(static_cast<int>(lane()), 0);
#pragma unroll
    for (int i = 0; i < kDqWarpRows; ++i) {
#pragma unroll
      for (int j = 0; j < kDqWarpColumns; ++j) {
        if (kIsUneven && column_step + j >= kDqColumnSteps) break;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float* const to = first + dq_part(i, 2 * j + half);
          const float* const x = dq[i][j] + 4 * half;
          if constexpr (kAddsFours) {
            add_floats_4(to, {x[0], x[1], x[2], x[3]});
          } else {
#pragma unroll
            for (int k = 0; k < 4; ++k) add_float(to + dq_place(0, k), x[k]);
          }
        }
      }
    }
  }

  float* sums_;
  int own_left_;
};

}  // namespace tw_kernel
