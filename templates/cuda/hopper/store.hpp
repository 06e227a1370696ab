#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/store/row_ends.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/boxes.hpp"
#include "kernel/configuration.hpp"

// The end of a warpgroup's 64 rows through shared memory: the copy engine writes whole lines and
// drops what is outside of the tensor. Every warp sends its own 16 rows and waits for no other.

namespace tw_kernel {

constexpr int kWarpRows = 16;

// out: [16][kValueDim] of the warp, where `staged` is its place in shared memory: rows of a panel
// of 64 rows. kHasEmpty: some of its rows may have kept nothing.
template <bool kHasEmpty>
TW_INLINE void stage_out(unsigned staged, const float (&out)[kRows][kOutColumns],
                         const RowEnds& ends) {
  const unsigned row = lane() % kWarpRows;
  const unsigned row_address = staged + row * kPanelRowBytes;
  // Nothing kept: 0 whatever V holds. A NaN sum is no empty row and stays.
  const unsigned kept_bits[kRows] = {ends.empty[0] ? 0u : ~0u, ends.empty[1] ? 0u : ~0u};
#pragma unroll
  for (int step = 0; step < kValuePad / 16; ++step) {
    const unsigned chunk = 2 * (step % 4) + lane() / 16;
    unsigned matrices[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i % 2;
      const int j = 4 * step + i / 2 * 2;
      matrices[i] = pack<OutElement>(out[r][j] * ends.factor[r], out[r][j + 1] * ends.factor[r]);
      if (kHasEmpty) matrices[i] &= kept_bits[r];
    }
    store_matrices(row_address + step / 4 * kBoxBytes + (chunk ^ row % 8) * 16, matrices);
  }
}

// first_row: counted from the sequence's first.
TW_INLINE void send_out(unsigned staged, const TensorMap& map, const SnippetArguments& call,
                        const QTile& q_tile, int first_row) {
  const BoxRow row = box_row(q_tile.q_begin(), q_tile.q_len(call), first_row);
#pragma unroll
  for (int panel = 0; panel < kOutPanels; ++panel) {
    send_rows(map, staged + panel * kBoxBytes, panel * panel_columns(2), row, q_tile.h, q_tile.b);
  }
  commit_stores();
}

TW_INLINE void store_out(const ForwardArguments&, const TensorMaps& maps, const SnippetArguments& call,
                         const Shared& shared, const QTile& q_tile, int q_stage, int consumer,
                         const RowEnds& ends, const float (&out)[kRows][kOutColumns]) {
  // From one lane, so that the compiler knows coordinates and addresses to be the same for the whole warp.
  const int warp = __shfl_sync(~0u, static_cast<int>(consumer_thread() % kWarpgroup / 32), 0);
  const unsigned staged = shared.out(q_stage, consumer) + warp * kWarpRows * kPanelRowBytes;
  const bool sends = lane() == 0;
  const int first_row = q_tile.first_row + consumer * 64 + warp * kWarpRows;
  if (kOutOverQ) {
    // The place holds rows of Q, which the other warps' last product may still read.
    sync_named<kWarpgroup>(kOwnBarrier + consumer);
  } else {
    if (sends) wait_until_stores_read();  // of what was staged last
    __syncwarp();
  }
  // Where a q tile has few tiles of K, rows are stored so often that a second copy of these instructions pays.
  if (!kKeepsKv || __any_sync(~0u, ends.empty[0] || ends.empty[1])) {
    stage_out<true>(staged, out, ends);
  } else {
    stage_out<false>(staged, out, ends);
  }
  fence_for_copies();
  __syncwarp();  // the warp's 16 rows are staged
  if (!sends) return;
  send_out(staged, maps.out, call, q_tile, first_row);
  if (kOutOverQ && !kKeepsKv) wait_until_stores_read();
}

}  // namespace tw_kernel
