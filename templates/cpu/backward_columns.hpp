#pragma once

#include "abi/cpu.hpp"
#include "cpu/backward.hpp"
#include "cpu/backward_tile.hpp"
#include "cpu/inline.hpp"
#include "cpu/load_lanes.hpp"
#include "cpu/vector.hpp"
#include "cpu/visit_lists.hpp"
#include "kernel/backward_call.hpp"
#include "kernel/configuration.hpp"

// dk and dv of a dense call.

namespace tw_kernel {

TW_NOINLINE void visit_batch(const BackwardArguments& arguments, int b, int h_kv, int first_column,
                             int columns, int chunks, Scratch& scratch) {
  const tilewright::abi::SnippetArguments& call = arguments.snippet;
  load_lanes<kHeadDim>(row_of<const KvElement>(arguments.k, b, h_kv, first_column),
                       arguments.k.row_stride, columns, chunks, scratch.keys, scratch.row);
  load_lanes<kValueDim>(row_of<const KvElement>(arguments.v, b, h_kv, first_column),
                        arguments.v.row_stride, columns, chunks, scratch.values, scratch.row);
  const int group = call.num_q_heads / call.num_kv_heads;
  for (int h = h_kv * group; h < (h_kv + 1) * group; ++h) {
    const Head head(arguments, b, h);
    const auto visit = [&](int begin, int end, bool is_partial) {
      for (int first = begin; first < end; first += kKvTile) {
        const int count = end - first < kKvTile ? end - first : kKvTile;
        visit_rows(head, first_column, AllLanes{chunks}, first, count, is_partial, scratch);
      }
    };
    if (kMasked) {
      visit_lists(arguments.columns, b, h, first_column / kBlockKv, kBlockQ, call.q_len, visit);
    } else {
      visit(0, call.q_len, true);
    }
  }
}

// A broadcast k or v has batch stride 0, and its gradient is the sum over the batch.
TW_NOINLINE void backward_columns(const BackwardArguments& arguments, int first_b, int count_b,
                                  int h_kv, int kv_tile, Scratch& scratch) {
  const tilewright::abi::SnippetArguments& call = arguments.snippet;
  const int first_column = kv_tile * kKvLanes;
  const int left = call.kv_len - first_column;
  const int columns = left < kKvLanes ? left : kKvLanes;
  const int chunks = (columns + kLanes - 1) / kLanes;
  for (int i = 0; i < chunks; ++i) scratch.ones[i] = broadcast(1.0f);
  for (int b = first_b; b < first_b + count_b; ++b) {
    const bool is_first = b == first_b, is_last = b + 1 == first_b + count_b;
    const bool sums_k = arguments.dk.batch_stride == 0, sums_v = arguments.dv.batch_stride == 0;
    for (int i = 0; (is_first || !sums_k) && i < chunks * kHeadDim; ++i) {
      scratch.sum_keys[i] = Vector{};
    }
    for (int i = 0; (is_first || !sums_v) && i < chunks * kValueDim; ++i) {
      scratch.sum_values[i] = Vector{};
    }
    visit_batch(arguments, b, h_kv, first_column, columns, chunks, scratch);
    for (int i = 0; i < columns; ++i) {
      const int column = first_column + i;
      if (arguments.dk.data != nullptr && (is_last || !sums_k)) {
        store_lane<kHeadDim>(scratch.sum_keys, i, arguments.scale, false, scratch.row,
                             row_of<KvElement>(arguments.dk, b, h_kv, column));
      }
      if (arguments.dv.data != nullptr && (is_last || !sums_v)) {
        store_lane<kValueDim>(scratch.sum_values, i, 1.0f, false, scratch.row,
                              row_of<KvElement>(arguments.dv, b, h_kv, column));
      }
    }
  }
}

}  // namespace tw_kernel
