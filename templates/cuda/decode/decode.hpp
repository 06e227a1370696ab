#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/decode/copies_ahead.hpp"
#include "cuda/decode/finish_item.hpp"
#include "cuda/decode/group_rows.hpp"
#include "cuda/decode/q_fragments.hpp"
#include "cuda/decode/sum_of_warps.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/weigh_tile.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/decode_items.hpp"
#include "kernel/engine.hpp"
#include "kernel/scales.hpp"
#include "snippet/snippets.hpp"

// Attention of sequences with few rows of q, at the speed of memory. A tile has the rows of all query heads
// that share a head of k and v, so that these are read once. Each warp works on its own kv tiles, which
// it copies kStages ahead, also into the next item; the block's warps meet only where an item ends.
//
// Shared memory: for each warp kStages tiles of K and V, one after the other; Q where it is not in
// registers.

namespace tw_kernel {

constexpr int kRingBytes = kStages * (kKBytes + kVBytes);  // of a warp
constexpr int kSharedQBytes = kQInRegisters ? 0 : kQBytes;
static_assert(kTeams * kRingBytes + kSharedQBytes <= kLaunchSharedBytes,
              "a launch has the tactic's shared_bytes");

TW_INLINE void clear(float (&out)[kRows][kOutColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kOutColumns; ++j) out[i][j] = 0.0f;
  }
}

TW_INLINE void decode(const ForwardArguments& arguments, const SnippetArguments& call,
                      unsigned shared_memory) {
  __shared__ Announced announced[kTeams];
  __shared__ RowEnd ends[kTeams][kQTile];
  __shared__ __align__(16) float sums[kTeams][kRowsOfPass][kPassStride];
  const auto team = static_cast<int>(__shfl_sync(~0u, threadIdx.x / 32, 0));
  const int group = group_of_items(arguments, call);
  const unsigned ring = shared_memory + team * kRingBytes;
  const unsigned shared_q = shared_memory + kTeams * kRingBytes;
  const TileRows rows = rows_of_group(arguments, group);
  const tw_snippet::tw_Loads no_loads = {};

  CopiesAhead ahead(arguments, call, announced[team], ring, team);
  ItemQ q;
  Scales scales;
  Softmax softmax;
  float out[kRows][kOutColumns];
  int item = 0;   // of those announced, that comes next
  int left = 0;   // units of the segment
  int stage = 0;  // of the ring, that is read next
#pragma unroll 1
  for (int asked = 1;; ++asked) {
    ahead.ask();
    if (asked < kStages) continue;  // the ring is not full yet
    __syncwarp();  // what is announced is visible to all lanes
    const WarpItem& current = announced[team].items[item];
    const QTile& q_tile = current.head.q_tile;
    if (left == 0) {
      left = current.segment.count;
      if (left == 0) break;
      q.load(arguments, call, q_tile, rows, group, shared_q);
      scales = find_scales(arguments, snippet_inputs(call, q_tile, no_loads, rows));
      softmax = start_softmax();
      clear(out);
    }
    wait_for_groups<kStages - 1>();
    __syncwarp();  // the tile is visible to all lanes
    const KvTile tile = announced[team].tiles[stage];
    const unsigned k = ring + stage * (kKBytes + kVBytes);
    if (tile.exists()) {
      const SnippetInputs inputs = snippet_inputs(call, q_tile, no_loads, rows);
      const Weights weights = weigh_tile(arguments, inputs, scales, tile, q, k, 0, softmax, out);
      value_tile(weights, k + kKBytes, out);
    }
    __syncwarp();  // no lane reads the tile any more
    stage = stage == kStages - 1 ? 0 : stage + 1;
    if (--left > 0) continue;
    finish_segment(arguments, call, current, ahead.cuts(), group, team, softmax,
                   {ends, sums, scaling_of(arguments, scales).to_log2}, out);
    item = next_item(item);
  }
}

}  // namespace tw_kernel
