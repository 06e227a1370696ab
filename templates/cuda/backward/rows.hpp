#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/elements.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/sweep.hpp"
#include "cuda/constants.hpp"
#include "cuda/language.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/own_rows.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/sequence.hpp"

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
  const OwnRows own = find_own_rows(arguments, call, blockIdx.x);
  if (kPacked && own.first >= own.end) return;
  const PlacedSequence& sequence = own.sequence;
  const int kv_len = sequence.kv_len(call);
  const ElementInputs inputs = {&call, sequence, sequence.state(call), own.b, own.h, own.h_kv, own.first,
                              score_factor(arguments.scale)};
  const int left = own.end - inputs.first_own;
  const long long first = sequence.q_begin() + inputs.first_own;
  KeyTile::load<kQTile>(
      memory.own_keys(),
      head_of<const QElement>(arguments.q, own.b, own.h) + first * arguments.q.row_stride,
      arguments.q.row_stride, left);
  ValueTile::load<kQTile>(
      memory.own_values(),
      head_of<const OutElement>(arguments.dout, own.b, own.h) + first * arguments.dout.row_stride,
      arguments.dout.row_stride, left);
  const FactsOfRows facts =
      facts_of_own_rows(arguments.facts + own.fact_row, inputs.first_own, own.end);
  const long long kv_first = sequence.kv_begin();
  const PassingRows<true> columns = {
      head_of<const KvElement>(arguments.k, own.b, own.h_kv) + kv_first * arguments.k.row_stride,
      head_of<const KvElement>(arguments.v, own.b, own.h_kv) + kv_first * arguments.v.row_stride,
      arguments.k.row_stride,
      arguments.v.row_stride,
      nullptr,
      kv_len};
  RowSums<KeyTile> dq;
  RowSums<ValueTile> none;
  dq.clear();
  Gathered<true> gathered(sums, memory.terms());
  visit_tiles<true, true, false>(memory, inputs, walk_columns(arguments, own, kv_len), columns, facts, dq,
                                 none, gathered);
  gathered.end_block(inputs, own.end);
  if (arguments.dq.data == nullptr) return;
  float factor[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) factor[i] = facts.of[i].lse == kInfinity ? 0.0f : arguments.scale;
  store_sums<KeyTile, QElement>(dq.of, factor, arguments.dq, own.b, own.h, sequence.q_begin(),
                                 inputs.first_own, own.end);
}

}  // namespace tw_kernel
