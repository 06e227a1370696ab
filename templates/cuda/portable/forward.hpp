#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/language.hpp"
#include "cuda/portable/weigh_tile.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/store/row_ends.hpp"
#include "kernel/store_rows.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/find_q_tile.hpp"
#include "kernel/kv_rows.hpp"
#include "kernel/load.hpp"
#include "kernel/scales.hpp"
#include "kernel/tiles.hpp"
#include "snippet/snippets.hpp"

// Attention of one q tile of one head: an online softmax over kv tiles. All warps both load and
// compute (FlashAttention-2's structure), so it runs on every GPU with cp.async.
//
// Shared memory: Q, then kStages tiles of K, then kStages of V. With one stage, V arrives while the
// scores are computed and the next K while P V is; with more, whole tiles are on their way ahead of
// their use.

namespace tw_kernel {

constexpr int kSharedBytes = kQBytes + kStages * (kKBytes + kVBytes) + kPBytes;
static_assert(kSharedBytes <= kLaunchSharedBytes, "a launch has the tactic's shared_bytes");

struct Shared {
  const HeadPointers* head;
  unsigned q;
  unsigned k;  // [kStages] tiles
  unsigned v;  // [kStages] tiles
  unsigned p;
};

TW_INLINE void load_k(const Shared& shared, int stage, const KvTensor& k, int kv_len,
                      const KvTile& tile) {
  if (!tile.exists()) return;
  load_k(shared.k + stage * kKBytes, kv_rows(shared.head->k, k, shared.head->q_tile, tile.first()),
         kv_len - tile.first());
}

TW_INLINE void load_v(const Shared& shared, int stage, const KvTensor& v, int kv_len,
                      const KvTile& tile) {
  if (!tile.exists()) return;
  load_v(shared.v + stage * kVBytes, kv_rows(shared.head->v, v, shared.head->q_tile, tile.first()),
         kv_len - tile.first());
}

TW_INLINE void forward(const ForwardArguments& arguments, const SnippetArguments& call,
                       unsigned shared_memory) {
  const QTile q_tile = find_q_tile(arguments, call, blockIdx.x);
  // The last block of rows of a mask may reach beyond q_len.
  if (q_tile.first_row >= q_tile.q_len(call)) return;

  __shared__ HeadPointers head;
  __shared__ tw_snippet::tw_Loads head_loads;
  const Shared shared = {&head, shared_memory, shared_memory + kQBytes,
                         shared_memory + kQBytes + kStages * kKBytes,
                         shared_memory + kQBytes + kStages * (kKBytes + kVBytes)};
  load_q(shared.q,
         head_of<const QElement>(arguments.q, q_tile.b, q_tile.h) +
             (q_tile.q_begin() + q_tile.first_row) * arguments.q.row_stride,
         arguments.q.row_stride, q_tile.q_len(call) - q_tile.first_row);
  if (threadIdx.x == 0) {
    head = {q_tile, find_kv(k_of(arguments), q_tile), find_kv(v_of(arguments), q_tile)};
    head_loads = load_for_head(call, q_tile);
  }
  const int kv_len = q_tile.kv_len(call);
  Tiles tiles(arguments, q_tile, head, kv_len);
  __syncthreads();  // the head and the list of tiles are there
  if (kStages == 1) {
    load_k(shared, 0, k_of(arguments), kv_len, tiles.ahead(0));
    commit_copies();
  }
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    load_k(shared, i, k_of(arguments), kv_len, tiles.ahead(i));
    load_v(shared, i, v_of(arguments), kv_len, tiles.ahead(i));
    commit_copies();
  }

  if (kQInRegisters || kSettlesTiles) {
    wait_for_groups<kStages == 1 ? 0 : kStages - 2>();
    settle_q(shared.q);
  }
  if (kQInRegisters) __syncthreads();  // Q is visible to all
  const QFragments q(shared.q);

  const SnippetInputs inputs = snippet_inputs(call, head.q_tile, head_loads);
  const Scales scales = find_scales(arguments, inputs);
  Softmax softmax = start_softmax();
  float out[kRows][kOutColumns] = {};
  int stage = 0;
#pragma unroll 1
  for (KvTile tile = tiles.ahead(0); tile.exists(); tile = tiles.ahead(0)) {
    wait_for_groups<kStages == 1 ? 0 : kStages - 2>();
    settle_k(shared.k + stage * kKBytes);
    if (kStages > 1) settle_v(shared.v + stage * kVBytes);
    __syncthreads();  // the tile is visible to all, and the stage before is no longer read by any
    tiles.refill();
    if (kStages == 1) {
      load_v(shared, 0, v_of(arguments), kv_len, tile);
    } else {
      const int last = stage == 0 ? kStages - 1 : stage - 1;
      load_k(shared, last, k_of(arguments), kv_len, tiles.ahead(kStages - 1));
      load_v(shared, last, v_of(arguments), kv_len, tiles.ahead(kStages - 1));
    }
    commit_copies();

    const Weights weights = weigh_tile(arguments, inputs, scales, tile, q,
                                       shared.k + stage * kKBytes, shared.p, softmax, out);

    if (kStages == 1) {
      wait_for_groups<0>();
      settle_v(shared.v);
      __syncthreads();  // V is visible to all, and K is no longer read by any
      load_k(shared, 0, k_of(arguments), kv_len, tiles.ahead(1));
      commit_copies();
    }
    value_tile(weights, shared.v + stage * kVBytes, out);

    tiles.advance();
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
  const GreatestScores greatest =
      greatest_scores(softmax, scaling_of(arguments, scales).to_log2);
  const RowEnds ends = end_rows(arguments, call, head.q_tile, softmax, greatest);
  store_rows(arguments, call, head.q_tile, ends, out);
}

}  // namespace tw_kernel
