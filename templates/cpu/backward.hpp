#pragma once

#include "abi/cpu.hpp"
#include "cpu/backward_tile.hpp"
#include "cpu/differentiate.hpp"
#include "cpu/element.hpp"
#include "cpu/gemm.hpp"
#include "cpu/head.hpp"
#include "cpu/inline.hpp"
#include "cpu/load_lanes.hpp"
#include "cpu/vector.hpp"
#include "kernel/backward_call.hpp"
#include "kernel/backward_dropout.hpp"
#include "kernel/configuration.hpp"
#include "snippet/snippets.hpp"

// The backward pass in two sweeps without shared sums: rows of q give dq and the gradients of buffers,
// columns give dk and dv. Each computes its tiles' scores again.
//
//   P  = exp(y - lse)                 y is the score after score_mod, and f' its derivative
//   dY = P * (dO V^T - delta)         delta = rowsum(dO * O) - dlse
//   dX = dY * f'
//   dQ = scale * dX K,  dK = scale * dX^T Q,  dV = P^T dO
//
// With dropout, the weights that met V stand for P in dV, and dO V^T is multiplied by what they are of P.

namespace tw_kernel {

// A tile's side along the lanes, in chunks of kLanes.
constexpr int kMostChunks = (kQTile > kKvLanes ? kQTile : kKvLanes) / kLanes;
constexpr int kWidest = kHeadDim > kValueDim ? kHeadDim : kValueDim;

// Private memory of one call.
struct Scratch {
  Vector keys[kMostChunks * kHeadDim];     // lanes of q, or of k
  Vector values[kMostChunks * kValueDim];  // lanes of dO, or of v
  Vector s[kMostChunks * kKvTile];
  Vector d[kMostChunks * kKvTile];
  Vector raw[kKvTile];
  Vector slope[kKvTile];
  Vector dy[kKvTile];
  Draws draws;
  Vector sum_keys[kMostChunks * kHeadDim];     // dq, or dk
  Vector sum_values[kMostChunks * kValueDim];  // dv
  Vector ones[kMostChunks];
  float key_rows[kKvTile * kHeadDim];
  float value_rows[kKvTile * kValueDim];
  RowFacts facts[kQTile > kKvTile ? kQTile : kKvTile];
  float row[kWidest];
  float other_row[kWidest];
};

// What both sweeps know of a head.
struct Head {
  const BackwardArguments& arguments;
  tw_snippet::tw_State state;
  int b;
  int h;
  int h_kv;
  long long first_lse;  // of this head's rows

  TW_MEMBER Head(const BackwardArguments& all, int batch, int head)
      : arguments(all),
        state(tw_snippet::tw_make_state(all.snippet)),
        b(batch),
        h(head),
        h_kv(head / (all.snippet.num_q_heads / all.snippet.num_kv_heads)),
        first_lse(lse_begin(all, batch, head)) {}

  // lse and delta of a row.
  TW_MEMBER RowFacts facts_of(int row, Scratch& scratch) const {
    const float lse = arguments.lse[first_lse + row];
    if (lse == -kInfinity) return {kInfinity, 0.0f};
    load_row<kValueDim>(row_of<const OutElement>(arguments.out, b, h, row), scratch.row);
    load_row<kValueDim>(row_of<const OutElement>(arguments.dout, b, h, row), scratch.other_row);
    float delta = 0.0f;
    for (int d = 0; d < kValueDim; ++d) delta += scratch.row[d] * scratch.other_row[d];
    return {lse, arguments.dlse == nullptr ? delta : delta - arguments.dlse[first_lse + row]};
  }

  TW_MEMBER BackwardPlace place(int first_row, int first_column) const {
    const tilewright::abi::SnippetArguments& call = arguments.snippet;
    return {b, h, h_kv, first_row, call.q_len - 1, call.q_offset, first_column, call.kv_len - 1,
            call.kv_offset};
  }
};

template <bool kLanesAreRows>
TW_INLINE void differentiate_chunk(const Head& head, const BackwardPlace& place, int count,
                                   bool is_partial, Vector* s, Vector* slope) {
  float* const scores = reinterpret_cast<float*>(s);
  float* const slopes = reinterpret_cast<float*>(slope);
  if (kHasMaskMod && is_partial) {
    differentiate_scores<kHasMaskMod, kLanesAreRows>(head.state, place, count, scores, slopes);
  } else {
    differentiate_scores<false, kLanesAreRows>(head.state, place, count, scores, slopes);
  }
}

// ---- rows: dq, and gradients of buffers and scalars

// Columns [first, first + count).
TW_NOINLINE void visit_columns(const Head& head, int first_row, int chunks, int first, int count,
                               bool is_partial, double* sums, Scratch& scratch) {
  const BackwardArguments& arguments = head.arguments;
  stage_rows<kHeadDim>(row_of<const KvElement>(arguments.k, head.b, head.h_kv, first),
                  arguments.k.row_stride, count, scratch.key_rows);
  stage_rows<kValueDim>(row_of<const KvElement>(arguments.v, head.b, head.h_kv, first),
                   arguments.v.row_stride, count, scratch.value_rows);
  score_tile<kHeadDim>(scratch.key_rows, kHeadDim, count, chunks, scratch.keys, scratch.s,
                       arguments.scale);
  score_tile<kValueDim>(scratch.value_rows, kValueDim, count, chunks, scratch.values, scratch.d,
                        1.0f);
  BackwardPlace place = head.place(first_row, first);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    Vector* const s = scratch.s + chunk * kKvTile;
    Vector* const d = scratch.d + chunk * kKvTile;
    for (int i = 0; kHasSums && i < count; ++i) scratch.raw[i] = s[i];
    differentiate_chunk<true>(head, place, count, is_partial, s, scratch.slope);
    draw_chunk<true>(head.state, place, count, scratch.draws);
    const RowVectors facts = vectors_of(scratch.facts + chunk * kLanes);
    for (int i = 0; i < count; ++i) {
      const Vector p = weight(s[i], facts.lse);
      const Vector product = dropped(scratch.draws, i, d[i]);
      const Vector dy = p == 0.0f ? Vector{} : p * (product - facts.delta);
      d[i] = p == 0.0f ? Vector{} : dy * scratch.slope[i];
      if (kHasSums) scratch.dy[i] = dy;
    }
    if (kHasSums) {
      add_gradients(head.state, place, count, reinterpret_cast<const float*>(scratch.raw),
                    reinterpret_cast<const float*>(scratch.dy), arguments.gradients, sums);
    }
    place.first_row += kLanes;
  }
  if (arguments.dq.data == nullptr) return;
  value_tile<kHeadDim>(scratch.key_rows, kHeadDim, count, chunks, scratch.d, scratch.sum_keys,
                       scratch.ones);
}

TW_NOINLINE void backward_rows(const BackwardArguments& arguments, int b, int h, int q_tile,
                               double* sums, Scratch& scratch) {
  const tilewright::abi::SnippetArguments& call = arguments.snippet;
  const Head head(arguments, b, h);
  const int first_row = q_tile * kQTile;
  const int rows_left = row_count(arguments) - first_row;
  const int rows = rows_left < kQTile ? rows_left : kQTile;
  const int chunks = (rows + kLanes - 1) / kLanes;

  load_lanes<kHeadDim>(row_of<const QElement>(arguments.q, b, h, first_row), arguments.q.row_stride,
                       rows, chunks, scratch.keys, scratch.row);
  load_lanes<kValueDim>(row_of<const OutElement>(arguments.dout, b, h, first_row),
                        arguments.dout.row_stride, rows, chunks, scratch.values, scratch.row);
  for (int i = 0; i < chunks; ++i) scratch.ones[i] = broadcast(1.0f);
  for (int i = 0; i < chunks * kHeadDim; ++i) scratch.sum_keys[i] = Vector{};
  for (int i = 0; i < chunks * kLanes; ++i) {
    scratch.facts[i] = i < rows ? head.facts_of(first_row + i, scratch) : RowFacts{kInfinity, 0.0f};
  }

  const auto visit = [&](int begin, int end, bool is_partial) {
    for (int first = begin; first < end; first += kKvTile) {
      const int count = end - first < kKvTile ? end - first : kKvTile;
      visit_columns(head, first_row, chunks, first, count, is_partial, sums, scratch);
    }
  };
  if (kMasked) {
    visit_kept_columns(arguments, b, h, first_row, visit);
  } else {
    visit(0, call.kv_len, true);
  }
  if (arguments.dq.data == nullptr) return;
  for (int row = 0; row < rows; ++row) {
    const bool is_empty = scratch.facts[row].lse == kInfinity;
    store_lane<kHeadDim>(scratch.sum_keys, row, is_empty ? 0.0f : arguments.scale, is_empty,
                         scratch.row, row_of<QElement>(arguments.dq, b, h, first_row + row));
  }
}

// ---- columns: dk and dv

// Which lanes of a tile are columns that take part: all, as those past the last are not stored.
struct AllLanes {
  int chunks;

  TW_MEMBER int first_chunk() const { return 0; }
  TW_MEMBER int end_chunk() const { return chunks; }
  TW_MEMBER Vector kept(int, Vector x) const { return x; }
};

// Rows [first, first + count) of q.
template <typename Lanes>
TW_NOINLINE void visit_rows(const Head& head, int first_column, const Lanes& lanes, int first,
                            int count, bool is_partial, Scratch& scratch) {
  const BackwardArguments& arguments = head.arguments;
  const int first_chunk = lanes.first_chunk(), chunks = lanes.end_chunk() - first_chunk;
  stage_rows<kHeadDim>(row_of<const QElement>(arguments.q, head.b, head.h, first), arguments.q.row_stride,
                  count, scratch.key_rows);
  stage_rows<kValueDim>(row_of<const OutElement>(arguments.dout, head.b, head.h, first),
                   arguments.dout.row_stride, count, scratch.value_rows);
  for (int i = 0; i < count; ++i) {
    scratch.facts[i] = head.facts_of(first + i, scratch);
    if (scratch.facts[i].lse != kInfinity) continue;
    for (int d = 0; d < kValueDim; ++d) scratch.value_rows[i * kValueDim + d] = 0.0f;
  }
  score_tile<kHeadDim>(scratch.key_rows, kHeadDim, count, chunks,
                       scratch.keys + first_chunk * kHeadDim, scratch.s, arguments.scale);
  score_tile<kValueDim>(scratch.value_rows, kValueDim, count, chunks,
                        scratch.values + first_chunk * kValueDim, scratch.d, 1.0f);
  BackwardPlace place = head.place(first, first_column + first_chunk * kLanes);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    Vector* const s = scratch.s + chunk * kKvTile;
    Vector* const d = scratch.d + chunk * kKvTile;
    differentiate_chunk<false>(head, place, count, is_partial, s, scratch.slope);
    draw_chunk<false>(head.state, place, count, scratch.draws);
    for (int i = 0; i < count; ++i) {
      s[i] = lanes.kept(first_chunk + chunk, weight(s[i], broadcast(scratch.facts[i].lse)));
      const Vector product = dropped(scratch.draws, i, d[i]);
      d[i] = s[i] == 0.0f ? Vector{} : s[i] * (product - scratch.facts[i].delta) * scratch.slope[i];
      s[i] = dropped(scratch.draws, i, s[i]);
    }
    place.first_column += kLanes;
  }
  if (arguments.dv.data != nullptr) {
    value_tile<kValueDim>(scratch.value_rows, kValueDim, count, chunks, scratch.s,
                          scratch.sum_values + first_chunk * kValueDim, scratch.ones);
  }
  if (arguments.dk.data != nullptr) {
    value_tile<kHeadDim>(scratch.key_rows, kHeadDim, count, chunks, scratch.d,
                         scratch.sum_keys + first_chunk * kHeadDim, scratch.ones);
  }
}

}  // namespace tw_kernel
