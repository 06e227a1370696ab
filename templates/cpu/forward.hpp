#pragma once

#include "abi/cpu.hpp"
#include "abi/tile_map.hpp"
#include "attention/row_sum.hpp"
#include "cpu/element.hpp"
#include "cpu/finish_scores.hpp"
#include "cpu/gemm.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/load_lanes.hpp"
#include "cpu/modify.hpp"
#include "cpu/softmax.hpp"
#include "cpu/staged_rows.hpp"
#include "cpu/vector.hpp"
#include "cpu/visit_lists.hpp"
#include "kernel/configuration.hpp"
#include "kernel/dropout.hpp"
#include "kernel/kv_rows.hpp"
#include "kernel/scales.hpp"
#include "math/elementary.hpp"
#include "snippet/snippets.hpp"

// Attention of one tile of q rows of one head: an online softmax over tiles of kv.

namespace tw_kernel {

using tilewright::abi::TileMapRow;
using tilewright::abi::TileSpan;

constexpr int kChunks = kQTile / kLanes;
static_assert(kQTile % kLanes == 0 && kChunks % kGroup == 0, "a q tile is a whole number of groups");

// Private memory of one call. K and V are copied here where they cannot be read in place.
struct Scratch {
  Vector q[kChunks * kHeadDim];
  Vector s[kChunks * kKvTile];
  Vector o[kChunks * kValueDim];
  RowState rows[kChunks];
  Vector alpha[kChunks];
  float k[kKvTile * kHeadDim];
  float v[kKvTile * kValueDim];
  float row[kHeadDim > kValueDim ? kHeadDim : kValueDim];
};

// One call's work.
struct Item {
  tw_snippet::tw_State state;
  KvRows k;  // of this head
  KvRows v;
  ChunkPlace place;
  int kv_offset;
  int kv_len;
  int rows;
  int chunks;
  float scale;
};

// One tile: kv rows [first, first + count).
TW_NOINLINE void visit_tile(const Item& item, int first, int count, bool partial,
                            Scratch& scratch) {
  constexpr long long kAnyStride = 1ll << 62;
  // Columns of rows that lie a multiple of a page apart would all fall into the same few cache lines.
  constexpr long long kNearStride = 256;
  const StagedRows k = item.k.template stage<kHeadDim>(first, count, kAnyStride, scratch.k);
  score_tile<kHeadDim>(k.rows, k.stride, count, item.chunks, scratch.q, scratch.s, item.scale);
  ChunkPlace place = item.place;
  place.first_kv_idx = first + item.kv_offset;
  for (int chunk = 0; chunk < item.chunks; ++chunk) {
    Vector* const s = scratch.s + chunk * kKvTile;
    float* const lanes = reinterpret_cast<float*>(s);
    finish_scores(item.state, place, first, count, partial, lanes);
    scratch.alpha[chunk] = update_softmax(s, count, scratch.rows[chunk]);
    scale_weights(item.state, place, first, count, lanes);
    drop_weights(item.state, place, count, lanes);
    place.first_row += kLanes;
  }
  const StagedRows v = item.v.template stage<kValueDim>(first, count, kNearStride, scratch.v);
  value_tile<kValueDim>(v.rows, v.stride, count, item.chunks, scratch.s, scratch.o, scratch.alpha);
}

TW_INLINE void visit_range(const Item& item, int begin, int end, bool partial, Scratch& scratch) {
  if (end > item.kv_len) end = item.kv_len;
  for (int first = begin; first < end; first += kKvTile) {
    const int count = end - first < kKvTile ? end - first : kKvTile;
    visit_tile(item, first, count, partial, scratch);
  }
}

// The tiles that the map keeps.
TW_INLINE void visit_map(const Item& item, const TileMapRow& map, Scratch& scratch) {
  using tilewright::abi::kTilesOfSpan;
  const TileSpan* const row = map.spans + item.place.h * map.head_stride;
  const long long spans = tilewright::abi::spans_of_columns(item.kv_len, kBlockKv);
  for (int i = 0; i < spans; ++i) {
    for (unsigned left = row[i].kept; left != 0; left &= left - 1) {
      const int bit = __builtin_ctz(left);
      const int begin = (i * kTilesOfSpan + bit) * kBlockKv;
      visit_range(item, begin, begin + kBlockKv, (row[i].partial >> bit & 1u) != 0, scratch);
    }
  }
}

// Where the rows of an item are stored.
struct ItemRows {
  OutElement* out;
  long long stride;   // of out
  float* lse;         // read where kHasLse
  float* max_scores;  // likewise, kHasMaxScores
};

// Without the sink. sum: NaN where a kept score is NaN or infinity.
TW_INLINE float max_score(float sum, float greatest) {
  return sum == 0.0f ? -kInfinity : sum == sum ? greatest : sum;
}

TW_NOINLINE void store_rows(const Item& item, const ItemRows& rows, Scratch& scratch) {
  const float* o = reinterpret_cast<const float*>(scratch.o);
  for (int row = 0; row < item.rows; ++row) {
    const RowState& state = scratch.rows[row / kLanes];
    const float sum = state.sum[row % kLanes];
    const float* lane = o + row / kLanes * kValueDim * kLanes + row % kLanes;
    // Nothing kept: 0 whatever V holds. A NaN sum is none of these and stays.
    const bool empty = sum == 0.0f;
    if (kHasMaxScores) rows.max_scores[row] = max_score(sum, state.max[row % kLanes]);
    RowSum end = {state.max[row % kLanes], sum, empty ? 0.0f : 1.0f / sum, empty};
    finish_row(item.state, item.place, item.place.first_row + row, sum, end);
    end.factor = finish_dropout(item.state, item.place, end.factor);
    for (int d = 0; d < kValueDim; ++d) {
      scratch.row[d] = end.empty ? 0.0f : lane[d * kLanes] * end.factor;
    }
    store_row<kValueDim>(scratch.row, rows.out + row * rows.stride);
    if (kHasLse) {
      rows.lse[row] = end.sum == 0.0f ? -kInfinity : end.greatest + tw_math::log(end.sum);
    }
  }
}

TW_INLINE void forward(const ForwardArguments& arguments, int b, int h, int q_tile,
                       Scratch& scratch) {
  const tilewright::abi::SnippetArguments& snippet = arguments.snippet;
  const int first_row = q_tile * kQTile;
  const int rows = kPacked ? arguments.rows : snippet.q_len;
  const int rows_left = rows - first_row;
  const int h_kv = h / (snippet.num_q_heads / snippet.num_kv_heads);

  Item item = {.state = tw_snippet::tw_make_state(snippet),
               .k = k_rows(arguments, b, h_kv),
               .v = v_rows(arguments, b, h_kv),
               .place = {b, h, h_kv, first_row, rows - 1, snippet.q_offset, 0}};
  item.kv_offset = snippet.kv_offset;
  item.kv_len = snippet.kv_len;
  item.rows = rows_left < kQTile ? rows_left : kQTile;
  item.chunks = (item.rows + kLanes - 1) / kLanes;
  item.scale = find_scale(item.state, item.place, arguments.scale);

  load_lanes<kHeadDim>(head_of<const QElement>(arguments.q, b, h) + first_row * arguments.q.row_stride,
                       arguments.q.row_stride, item.rows, item.chunks, scratch.q, scratch.row);
  for (int i = 0; i < item.chunks * kValueDim; ++i) scratch.o[i] = Vector{};
  for (int i = 0; i < item.chunks; ++i) scratch.rows[i] = {broadcast(-kInfinity), Vector{}};

  if (kMasked && kPacked) {
    visit_map(item, arguments.map, scratch);
  } else if (kMasked) {
    visit_lists(arguments.mask, b, h, first_row / kBlockQ, kBlockKv, item.kv_len,
                [&](int begin, int end, bool partial) { visit_range(item, begin, end, partial, scratch); });
  } else {
    visit_range(item, 0, item.kv_len, kHasMaskMod, scratch);
  }

  const long long first =
      ((kPacked ? 0 : static_cast<long long>(b) * snippet.num_q_heads) + h) *
          arguments.lse_head_stride +
      first_row;
  const ItemRows stored = {
      .out = head_of<OutElement>(arguments.out, b, h) + first_row * arguments.out.row_stride,
      .stride = arguments.out.row_stride,
      .lse = kHasLse ? arguments.lse + first : nullptr,
      .max_scores = kHasMaxScores ? arguments.max_scores + first : nullptr};
  store_rows(item, stored, scratch);
}

}  // namespace tw_kernel
