#pragma once

#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/boxes.hpp"
#include "kernel/configuration.hpp"
#include "kernel/hopper_backward_columns.hpp"
#include "kernel/sequence.hpp"

// dK and dV of a block's columns, through the places of K and V in shared memory: the copy engine writes
// whole lines and drops what is past the columns' end.

namespace tw_kernel {

// Which of a block's sums a warpgroup has: 64 rows, from this one and this panel on.
struct SumsPlace {
  int row;
  int panel;
};

// staged: where the block's K or V was, whose products have ended
template <int kSums>
TW_INLINE void store_sums(unsigned staged, const TensorMap& map, const SnippetArguments& call,
                          const OwnColumns& own, int consumer,
                          const SumsPlace& place, float factor, const float (&sums)[kRows][kSums]) {
  constexpr int kPanels = (kSums * 4 + kPanelColumns - 1) / kPanelColumns;
  const unsigned to = staged + place.panel * kOwnPanelBytes + place.row * kPanelRowBytes;
  const unsigned row = consumer_thread() % kWarpgroup / 32 * 16 + lane() % 16;
#pragma unroll
  for (int step = 0; step < kSums / 4; ++step) {
    const unsigned chunk = 2 * (step % 4) + lane() / 16;
    unsigned matrices[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i % 2;
      const int j = 4 * step + i / 2 * 2;
      matrices[i] = pack<KvElement>(sums[r][j] * factor, sums[r][j + 1] * factor);
    }
    store_matrices(to + step / 4 * kOwnPanelBytes + row * kPanelRowBytes + (chunk ^ row % 8) * 16,
                   matrices);
  }
  fence_for_copies();
  sync_named<kWarpgroup>(kOwnBarrier + consumer);  // the warpgroup's rows are staged
  if (consumer_thread() % kWarpgroup != 0) return;
  const PlacedSequence sequence = own.sequence();
  const BoxRow at = box_row(sequence.kv_begin(), sequence.kv_len(call), own.first + place.row);
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    send_rows(map, to + panel * kOwnPanelBytes, (place.panel + panel) * kPanelColumns, at, own.h_kv, own.b);
  }
  commit_stores();
}

// The block's shared memory is another's as soon as its threads have ended.
TW_INLINE void wait_for_stores() {
  if (consumer_thread() % kWarpgroup == 0) wait_until_stores_read();
}

}  // namespace tw_kernel
