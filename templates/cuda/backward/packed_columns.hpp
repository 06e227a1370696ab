#pragma once

#include "abi/column_sequences.hpp"
#include "abi/cuda_backward.hpp"
#include "abi/cuda_packed.hpp"
#include "abi/cuda_packed_backward.hpp"
#include "abi/plan.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/backward/mapped_walks.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/backward/sweep.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "kernel/backward_engine.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "kernel/own_rows.hpp"
#include "kernel/sequence.hpp"

// A block that owns rows of packed k and v of one kv head: it adds up what each sequence that has some of
// them gives to dK and dV. Rows that belong to no sequence get 0.

namespace tw_kernel {

// Which rows of a tile are columns of a sequence: from `begin` to before `end`.
struct RowsOfSequence {
  __forceinline__ RowsOfSequence(const tilewright::abi::PlannedSequence& sequence, int first_row)
      : begin(sequence.kv_begin - first_row), end(begin + sequence.kv_len) {}
  __forceinline__ bool has(int row) const { return row >= begin && row < end; }

  int begin;
  int end;
};

// Keeps the sums of those of a thread's rows that the visited sequence does not have: its products add 0 times its rows
// of q and dout to them, which is NaN where these hold NaN or infinity.
template <bool kWanted, typename Tile>
class SumsOfOthers {
 public:
  __forceinline__ SumsOfOthers(const RowsOfSequence& sequence, const RowSums<Tile>& sums) {
    if (!kWanted) return;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (sequence.has(row_of(i))) continue;
#pragma unroll
      for (int j = 0; j < Tile::kSumColumns; ++j) kept_[i][j] = sums.of[i][j];
    }
  }

  __forceinline__ void restore(const RowsOfSequence& sequence, RowSums<Tile>& sums) const {
    if (!kWanted) return;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (sequence.has(row_of(i))) continue;
#pragma unroll
      for (int j = 0; j < Tile::kSumColumns; ++j) sums.of[i][j] = kept_[i][j];
    }
  }

 private:
  volatile float kept_[kRows][Tile::kSumColumns];  // in local memory: the loop over tiles needs the registers
};

// The rows of a tile, as columns of one sequence.
template <bool kKeys, bool kValues>
TW_INLINE void visit_columns(const BackwardArguments& arguments, const SnippetArguments& call,
                             const Gathered<false>::Sums& sums, const SweepMemory& memory, int b,
                             int h_kv, int first_row, RowSums<KeyTile>& dk, RowSums<ValueTile>& dv) {
  const tilewright::abi::cuda::PlanArguments& plan = arguments.plan;
  const tilewright::abi::PlannedSequence& sequence = plan.sequences[b];
  PlacedSequence placed;
  placed.rows = sequence;
  placed.end_of_rows = sequence.q_len;
  placed.begin_in_block = 0;
  const int first_column = first_row - sequence.kv_begin;
  const int group = call.num_q_heads / call.num_kv_heads;
  const long long q_begin = sequence.q_begin;
#pragma unroll 1
  for (int h = h_kv * group; h < (h_kv + 1) * group; ++h) {
    const ElementInputs inputs = {&call, placed, placed.state(call), b, h, h_kv, first_column,
                                score_factor(arguments.scale)};
    const PassingRows<false> rows = {
        head_of<const QElement>(arguments.q, 0, h) + q_begin * arguments.q.row_stride,
        head_of<const OutElement>(arguments.dout, 0, h) + q_begin * arguments.dout.row_stride,
        arguments.q.row_stride,
        arguments.dout.row_stride,
        arguments.facts + static_cast<long long>(h) * arguments.facts_rows + q_begin,
        sequence.q_len};
    const int list = plan.map.heads == 1 ? 0 : h;
    const long long map_row = static_cast<long long>(list) * plan.map.rows + sequence.tile_row;
    const MappedRows walk(plan.map.spans + map_row * plan.map.spans_of_row, plan.map.spans_of_row,
                          sequence, first_column);
    Gathered<false> gathered(sums, memory.terms());
    visit_tiles<false, kKeys, kValues>(memory, inputs, walk, rows, {}, dk, dv, gathered);
    if (kKeys) gathered.end_block(inputs, sequence.kv_len);
  }
}

template <bool kKeys, bool kValues>
TW_INLINE void visit_sequence(const BackwardArguments& arguments, const SnippetArguments& call,
                              const Gathered<false>::Sums& sums, const SweepMemory& memory, int b,
                              int h_kv, int first_row, RowSums<KeyTile>& dk, RowSums<ValueTile>& dv) {
  const tilewright::abi::PlannedSequence& sequence = arguments.plan.sequences[b];
  if (!tilewright::abi::has_rows_of_tile(sequence, first_row / kQTile, kQTile)) return;
  const SumsOfOthers<kKeys, KeyTile> keys(RowsOfSequence(sequence, first_row), dk);
  const SumsOfOthers<kValues, ValueTile> values(RowsOfSequence(sequence, first_row), dv);
  visit_columns<kKeys, kValues>(arguments, call, sums, memory, b, h_kv, first_row, dk, dv);
  keys.restore(RowsOfSequence(sequence, first_row), dk);  // counted again: the loop has no registers left
  values.restore(RowsOfSequence(sequence, first_row), dv);
}

template <bool kKeys, bool kValues>
TW_INLINE void backward_columns(const BackwardArguments& arguments, const SnippetArguments& call,
                                const Gathered<false>::Sums& sums, unsigned shared_memory, int h_kv,
                                int tile) {
  const SweepMemory memory(shared_memory);
  const int first_row = tile * kQTile, total_kv = call.kv_len;
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
  KeyTile::load<kQTile>(memory.own_keys(),
                        head_of<const KvElement>(arguments.k, 0, h_kv) +
                            first_row * arguments.k.row_stride,
                        arguments.k.row_stride, total_kv - first_row);
  ValueTile::load<kQTile>(memory.own_values(),
                          head_of<const KvElement>(arguments.v, 0, h_kv) +
                              first_row * arguments.v.row_stride,
                          arguments.v.row_stride, total_kv - first_row);
  tilewright::abi::ColumnSequences found = {0, 0};
  if (arguments.column_sequences != nullptr) found = arguments.column_sequences[tile];
#pragma unroll 1
  for (int b = found.first; b < found.end; ++b) {
    visit_sequence<kKeys, kValues>(arguments, call, sums, memory, b, h_kv, first_row, dk, dv);
  }
  wait_for_groups<0>();
  if (kKeys && arguments.dk.data != nullptr) {
    store_sums<KeyTile, KvElement>(dk.of, scale, arguments.dk, 0, h_kv, 0, first_row, total_kv);
  }
  if (kValues && arguments.dv.data != nullptr) {
    store_sums<ValueTile, KvElement>(dv.of, one, arguments.dv, 0, h_kv, 0, first_row, total_kv);
  }
}

// Where dk and dv are too wide for the registers of one block, each has its own blocks.
TW_INLINE void backward_columns(const BackwardArguments& arguments, const SnippetArguments& call,
                                const Gathered<false>::Sums& sums, unsigned shared_memory) {
  constexpr int kParts = kSplitsColumns ? 2 : 1;
  const int tiles = (call.kv_len + kQTile - 1) / kQTile;
  const int number = static_cast<int>(blockIdx.x) / kParts;
  const int h_kv = number / tiles, tile = number % tiles;
  if constexpr (!kSplitsColumns) {
    backward_columns<true, true>(arguments, call, sums, shared_memory, h_kv, tile);
  } else if (blockIdx.x % kParts == 0) {
    const bool is_wanted = arguments.dk.data != nullptr || Gathered<false>::kCount > 0;
    if (is_wanted) backward_columns<true, false>(arguments, call, sums, shared_memory, h_kv, tile);
  } else if (arguments.dv.data != nullptr) {
    backward_columns<false, true>(arguments, call, sums, shared_memory, h_kv, tile);
  }
}

// For a plan: a thread for each tile of rows of k.
TW_INLINE void find_column_sequences(const tilewright::abi::cuda::ColumnPlanArguments& plan) {
  const long long tile =
      static_cast<long long>(blockIdx.x) * tilewright::abi::cuda::kPlainThreads + threadIdx.x;
  if (tile >= plan.tiles) return;
  tilewright::abi::ColumnSequences found = {plan.batch, 0};
#pragma unroll 4
  for (int b = 0; b < plan.batch; ++b) {
    if (!tilewright::abi::has_rows_of_tile(plan.sequences[b], tile, kQTile)) continue;
    found.first = min(found.first, b);
    found.end = b + 1;
  }
  plan.columns[tile] = found;
}

}  // namespace tw_kernel
