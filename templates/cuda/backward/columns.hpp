#pragma once

#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/sweep.hpp"
#include "cuda/backward/walk.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/thread.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/own_rows.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// A block that owns columns of a dense call: dK = scale * dX^T Q and dV = P^T dO, over all query heads of a kv head, and
// gradients of buffers by column.

namespace tw_kernel {

// The columns of one kv head that a block owns.
struct OwnColumns {
  int first_b;
  int h_kv;
  int first;
};

// Found anew each time: kept over the loops it would cost registers.
TW_INLINE OwnColumns find_own_columns(const BackwardArguments& arguments, const SnippetArguments& call) {
  constexpr int kParts = kSplitsColumns ? 2 : 1;
  const int tiles = (call.kv_len + kQTile - 1) / kQTile;
  const int number = static_cast<int>(block_number()) / kParts;
  const int head = number / tiles;
  return {head / call.num_kv_heads * arguments.batches_of_block, head % call.num_kv_heads, number % tiles * kQTile};
}

TW_INLINE void load_own_columns(const BackwardArguments& arguments, const SweepMemory& memory, int b,
                                const OwnColumns& own, int kv_len) {
  const int left = kv_len - own.first;
  KeyTile::load<kQTile>(memory.own_keys(),
                        head_of<const KvElement>(arguments.k, b, own.h_kv) +
                            own.first * arguments.k.row_stride,
                        arguments.k.row_stride, left);
  ValueTile::load<kQTile>(memory.own_values(),
                          head_of<const KvElement>(arguments.v, b, own.h_kv) +
                              own.first * arguments.v.row_stride,
                          arguments.v.row_stride, left);
}

template <bool kKeys, bool kValues, typename Dq>
TW_INLINE void visit_query_heads(const BackwardArguments& arguments, const SnippetArguments& call,
                                 const Gathered<false>::Sums& sums, const SweepMemory& memory, int b,
                                 const OwnColumns& own, RowSums<KeyTile>& dk,
                                 RowSums<ValueTile>& dv, const Dq& dq) {
  const int group = call.num_q_heads / call.num_kv_heads;
#pragma unroll 1
  for (int h = own.h_kv * group; h < (own.h_kv + 1) * group; ++h) {
    const ElementInputs inputs = {&call, {}, tw_snippet::tw_make_state(call), b, h, own.h_kv, own.first,
                                score_factor(arguments.scale)};
    const long long head = static_cast<long long>(b) * call.num_q_heads + h;
    const PassingRows<false> rows = {head_of<const QElement>(arguments.q, b, h),
                                     head_of<const OutElement>(arguments.dout, b, h),
                                     arguments.q.row_stride,
                                     arguments.dout.row_stride,
                                     arguments.facts + head * arguments.facts_rows,
                                     call.q_len};
    const TileWalk<kBlockQ> walk(
        arguments.columns, kMasked ? list_row(arguments.columns, b, h, own.first / kBlockKv) : 0,
        call.q_len);
    Gathered<false> gathered(sums, memory.terms());
    visit_tiles<false, kKeys, kValues>(memory, inputs, walk, rows, {}, dk, dv, gathered,
                                        dq.of_head(call, b, h));
    if (kKeys && arguments.gathers_columns != 0) gathered.end_block(inputs, call.kv_len);
  }
}

// A block has more than one batch where dk and dv are sums over them.
template <bool kKeys, bool kValues, typename Dq = NoDq>
TW_INLINE void backward_columns(const BackwardArguments& arguments, const SnippetArguments& call,
                                const Gathered<false>::Sums& sums, unsigned shared_memory,
                                const Dq& dq = {}) {
  const SweepMemory memory(shared_memory);
  const OwnColumns own = find_own_columns(arguments, call);
  RowSums<KeyTile> dk;
  RowSums<ValueTile> dv;
  if (kKeys) dk.clear();
  if (kValues) dv.clear();
  float scale[kRows], one[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    scale[i] = arguments.scale;
    one[i] = 1.0f;
  }
#pragma unroll 1
  for (int b = own.first_b; b < own.first_b + (kOneSweep ? 1 : arguments.batches_of_block); ++b) {
    load_own_columns(arguments, memory, b, own, call.kv_len);
    visit_query_heads<kKeys, kValues>(arguments, call, sums, memory, b, own, dk, dv, dq);
  }
  const OwnColumns to = find_own_columns(arguments, call);
  if (kKeys && arguments.dk.data != nullptr) {
    store_sums<KeyTile, KvElement>(dk.of, scale, arguments.dk, to.first_b, to.h_kv, 0, to.first,
                                    call.kv_len);
  }
  if (kValues && arguments.dv.data != nullptr) {
    store_sums<ValueTile, KvElement>(dv.of, one, arguments.dv, to.first_b, to.h_kv, 0,
                                     to.first, call.kv_len);
  }
}

// Where dk and dv are too wide for the registers of one block, each has its own blocks.
TW_INLINE void backward_columns(const BackwardArguments& arguments, const SnippetArguments& call,
                                const Gathered<false>::Sums& sums, unsigned shared_memory) {
  if constexpr (!kSplitsColumns) {
    backward_columns<true, true>(arguments, call, sums, shared_memory);
  } else if (blockIdx.x % 2 == 0) {
    const bool is_wanted = arguments.dk.data != nullptr || Gathered<false>::kCount > 0;
    if (is_wanted) backward_columns<true, false>(arguments, call, sums, shared_memory);
  } else if (arguments.dv.data != nullptr) {
    backward_columns<false, true>(arguments, call, sums, shared_memory);
  }
}

}  // namespace tw_kernel
