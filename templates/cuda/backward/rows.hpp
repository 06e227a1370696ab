#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/attention/place.hpp"
#include "cuda/backward/elements.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/backward/scene.hpp"
#include "cuda/backward/sweep.hpp"
#include "cuda/backward/walk.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "snippet/snippets.hpp"

// A block that owns rows of q: dQ = scale * dX K, and gradients of buffers and scalars.

namespace tw_kernel {

TW_INLINE FactsOfRows facts_of_own_rows(const RowFacts* facts, int first_own, int q_len) {
  FactsOfRows own;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = first_own + row_of(i);
    own.of[i] = {kInfinity, 0.0f};
    if (row < q_len) own.of[i] = facts[row];
  }
  return own;
}

TW_INLINE void backward_rows(const BackwardArguments& arguments, const SnippetArguments& call,
                             const Gathered<true>::Sums& sums, unsigned shared_memory) {
  const SweepMemory memory(shared_memory);
  const int tiles = (call.q_len + kQTile - 1) / kQTile;
  const int head = static_cast<int>(blockIdx.x) / tiles;
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) % tiles;  // of causal masks, the longest first
  const int b = head / call.num_q_heads, h = head % call.num_q_heads;
  const int h_kv = h / (call.num_q_heads / call.num_kv_heads);
  const ElementScene scene = {&call, tw_snippet::tw_make_state(call), b, h, h_kv, tile * kQTile,
                              score_factor(arguments.scale)};
  const int left = call.q_len - scene.first_own;
  KeyTile::load<kQTile>(
      memory.own_keys(),
      head_of<const QElement>(arguments.q, b, h) + scene.first_own * arguments.q.row_stride,
      arguments.q.row_stride, left);
  ValueTile::load<kQTile>(
      memory.own_values(),
      head_of<const OutElement>(arguments.dout, b, h) + scene.first_own * arguments.dout.row_stride,
      arguments.dout.row_stride, left);
  const FactsOfRows facts =
      facts_of_own_rows(arguments.facts + static_cast<long long>(head) * arguments.facts_rows,
                        scene.first_own, call.q_len);
  const PassingRows<true> columns = {head_of<const KvElement>(arguments.k, b, h_kv),
                                     head_of<const KvElement>(arguments.v, b, h_kv),
                                     arguments.k.row_stride,
                                     arguments.v.row_stride,
                                     nullptr,
                                     call.kv_len};
  const TileWalk<kBlockKv> walk(
      arguments.mask, kMasked ? list_row(arguments.mask, b, h, scene.first_own / kBlockQ) : 0,
      call.kv_len);
  RowSums<KeyTile> dq;
  RowSums<ValueTile> none;
  dq.clear();
  Gathered<true> gathered(sums, memory.terms());
  visit_tiles<true, true, false>(memory, scene, walk, columns, facts, dq, none, gathered);
  gathered.end_block(scene, call.q_len);
  if (arguments.dq.data == nullptr) return;
  float factor[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) factor[i] = facts.of[i].lse == kInfinity ? 0.0f : arguments.scale;
  store_sums<kHeadDim, QElement>(dq.of, factor, arguments.dq, b, h, scene.first_own, call.q_len);
}

}  // namespace tw_kernel
