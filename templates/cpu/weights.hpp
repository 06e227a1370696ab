#pragma once

#include "abi/cpu.hpp"
#include "cpu/backward_tile.hpp"
#include "cpu/element.hpp"
#include "cpu/finish_scores.hpp"
#include "cpu/gemm.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/load_lanes.hpp"
#include "cpu/modify.hpp"
#include "cpu/staged_rows.hpp"
#include "cpu/vector.hpp"
#include "cpu/visit_lists.hpp"
#include "kernel/configuration.hpp"
#include "kernel/dropout.hpp"
#include "kernel/kv_rows.hpp"
#include "kernel/scales.hpp"
#include "snippet/snippets.hpp"

// The softmax's weights of one tile of q rows of one head: W = e^(y - lse), where y is the score after score_mod
// and lse what the forward kernel wrote. An element that is dropped weighs 0, and so does each of a row with
// nothing kept. With dropout they are the weights that met V.

namespace tw_kernel {

constexpr int kChunks = kQTile / kLanes;

// Private memory of one call.
struct Scratch {
  Vector q[kChunks * kHeadDim];
  Vector s[kChunks * kKvTile];
  float k[kKvTile * kHeadDim];
  float row[kHeadDim];
  float lse[kQTile];  // +inf of a row with nothing kept
};

// One call's work.
struct WeightsItem {
  tw_snippet::tw_State state;
  KvRows k;  // of this head
  ChunkPlace place;
  int kv_offset;
  int kv_len;
  int rows;
  int chunks;
  float scale;
  OutElement* weights;  // [rows][kv_len]
};

// A score of -infinity weighs 0 whatever its row's lse is.
TW_INLINE Vector weights_of(Vector y, const float* lse) {
  Vector of_rows;
  for (int lane = 0; lane < kLanes; ++lane) of_rows[lane] = lse[lane];
  return y == -kInfinity ? Vector{} : weight(y, of_rows);
}

// One tile: kv rows [first, first + count).
TW_NOINLINE void weigh_columns(const WeightsItem& item, int first, int count, bool partial,
                               Scratch& scratch) {
  constexpr long long kAnyStride = 1ll << 62;
  const StagedRows k = item.k.template stage<kHeadDim>(first, count, kAnyStride, scratch.k);
  score_tile<kHeadDim>(k.rows, k.stride, count, item.chunks, scratch.q, scratch.s, item.scale);
  ChunkPlace place = item.place;
  place.first_kv_idx = first + item.kv_offset;
  const float factor = finish_dropout(item.state, place, 1.0f);
  for (int chunk = 0; chunk < item.chunks; ++chunk) {
    Vector* const s = scratch.s + chunk * kKvTile;
    finish_scores(item.state, place, first, count, partial, reinterpret_cast<float*>(s));
    for (int i = 0; i < count; ++i) s[i] = weights_of(s[i], scratch.lse + chunk * kLanes) * factor;
    drop_weights(item.state, place, count, reinterpret_cast<float*>(s));
    place.first_row += kLanes;
  }
  for (int row = 0; row < item.rows; ++row) {
    const float* const lane =
        reinterpret_cast<const float*>(scratch.s + row / kLanes * kKvTile) + row % kLanes;
    OutElement* const to = item.weights + static_cast<long long>(row) * item.kv_len + first;
    for (int i = 0; i < count; ++i) from_float(lane[i * kLanes], to + i);
  }
}

TW_NOINLINE void write_weights(const ForwardArguments& arguments, int b, int h, int q_tile,
                               Scratch& scratch) {
  const tilewright::abi::SnippetArguments& snippet = arguments.snippet;
  const int first_row = q_tile * kQTile;
  const int rows_left = snippet.q_len - first_row;
  const int h_kv = h / (snippet.num_q_heads / snippet.num_kv_heads);
  const long long row_of_call =
      (static_cast<long long>(b) * snippet.num_q_heads + h) * snippet.q_len + first_row;

  WeightsItem item = {.state = tw_snippet::tw_make_state(snippet),
                      .k = k_rows(arguments, b, h_kv),
                      .place = {b, h, h_kv, first_row, snippet.q_len - 1, snippet.q_offset, 0}};
  item.kv_offset = snippet.kv_offset;
  item.kv_len = snippet.kv_len;
  item.rows = rows_left < kQTile ? rows_left : kQTile;
  item.chunks = (item.rows + kLanes - 1) / kLanes;
  item.scale = find_scale(item.state, item.place, arguments.scale);
  item.weights = static_cast<OutElement*>(arguments.weights) + row_of_call * item.kv_len;

  load_lanes<kHeadDim>(head_of<const QElement>(arguments.q, b, h) + first_row * arguments.q.row_stride,
                       arguments.q.row_stride, item.rows, item.chunks, scratch.q, scratch.row);
  for (int i = 0; i < kQTile; ++i) {
    const float lse = i < item.rows ? arguments.lse[row_of_call + i] : -kInfinity;
    scratch.lse[i] = lse == -kInfinity ? kInfinity : lse;
  }
  const auto visit = [&](int begin, int end, bool partial) {
    for (int first = begin; first < end; first += kKvTile) {
      const int count = end - first < kKvTile ? end - first : kKvTile;
      weigh_columns(item, first, count, partial, scratch);
    }
  };
  if (kMasked) {  // what no listed block has is dropped
    for (long long i = 0; i < static_cast<long long>(item.rows) * item.kv_len; ++i) {
      from_float(0.0f, item.weights + i);
    }
    visit_lists(arguments.mask, b, h, first_row / kBlockQ, kBlockKv, item.kv_len, visit);
  } else {
    visit(0, item.kv_len, kHasMaskMod);
  }
}

}  // namespace tw_kernel
