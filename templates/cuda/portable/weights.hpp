#pragma once

#include "abi/cuda_weights.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/no_draws.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/constants.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/dropout.hpp"
#include "kernel/engine.hpp"
#include "kernel/find_q_tile.hpp"
#include "kernel/kv_rows.hpp"
#include "kernel/load.hpp"
#include "kernel/scales.hpp"
#include "kernel/tiles.hpp"
#include "snippet/snippets.hpp"

// The softmax's weights of one q tile of one head: W = e^(y - lse), where y is the score after score_mod and
// lse what the forward kernel wrote. An element that is dropped weighs 0, and so does each of a row with
// nothing kept. With dropout they are the weights that met V.
//
// A block of threads divides its tiles as in forward.hpp, and reads no V. Shared memory: Q, then one tile of K.

namespace tw_kernel {

using tilewright::abi::cuda::WeightsArguments;

static_assert(kQBytes + kKBytes <= kLaunchSharedBytes, "a launch has the tactic's shared_bytes");

// The rows of weights of a q tile.
class WeightRows {
 public:
  // rows: how many of the tile's exist
  __forceinline__ WeightRows(const WeightsArguments& arguments, const QTile& q_tile,
                             const SnippetArguments& call)
      : kv_len_(call.kv_len), rows_(min(kQTile, call.q_len - q_tile.first_row)) {
    const long long first = q_tile.lse_begin(call, q_tile.b, q_tile.h) + q_tile.first_row;
    elements_ = static_cast<OutElement*>(arguments.weights) + first * kv_len_;
  }

  // What no listed tile has is dropped.
  __forceinline__ void clear() const {
    for (long long i = threadIdx.x; i < static_cast<long long>(rows_) * kv_len_; i += kThreads) {
      from_float(0.0f, elements_ + i);
    }
  }

  // w: of a thread's elements of the tile from column `first` on.
  __forceinline__ void store(int first, const float (&w)[kRows][kColumns]) const {
    if constexpr (kHasPairs && sizeof(OutElement) == 2) {
      if (divides_rows(4)) return store_fours<OutElement>(first, w);
    } else if constexpr (kHasPairs && sizeof(OutElement) == 4) {
      if (divides_rows(2)) return store_pairs(first, w);
    }
    store_elements(first, w);
  }

 private:
  // Whether a thread's columns come in twos that are neighbours, as in fragment.hpp.
  static constexpr bool kHasPairs = column_offset(1) == 1;

  // Whether rows begin and end at multiples of so many elements.
  __forceinline__ bool divides_rows(int elements) const {
    const auto address = reinterpret_cast<unsigned long long>(elements_);
    return kv_len_ % elements == 0 && address % (elements * sizeof(OutElement)) == 0;
  }

  // Two neighbouring lanes give each other two columns, so that each has four that are neighbours, and eight
  // rows' stores fill sectors of 32 bytes.
  // Element: OutElement, of 16 bits
  template <typename Element>
  __forceinline__ void store_fours(int first, const float (&w)[kRows][kColumns]) const {
    const bool is_odd = lane() % 2 != 0;
    const int column = first + column_of(0) + (is_odd ? 6 : 0);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      Element* const row = elements_ + static_cast<long long>(row_of(i)) * kv_len_;
#pragma unroll
      for (int j = 0; j < kColumns; j += 4) {
        const unsigned left = pack<Element>(w[i][j], w[i][j + 1]);
        const unsigned right = pack<Element>(w[i][j + 2], w[i][j + 3]);
        const unsigned given = __shfl_xor_sync(~0u, is_odd ? left : right, 1);
        const int at = column + column_offset(j);
        if (row_of(i) < rows_ && at < kv_len_) {
          *reinterpret_cast<uint2*>(row + at) =
              is_odd ? uint2{given, right} : uint2{left, given};
        }
      }
    }
  }

  __forceinline__ void store_pairs(int first, const float (&w)[kRows][kColumns]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row_of(i) >= rows_) continue;
      OutElement* const row = elements_ + static_cast<long long>(row_of(i)) * kv_len_;
#pragma unroll
      for (int j = 0; j < kColumns; j += 2) {
        const int column = first + column_of(0) + column_offset(j);
        if (column < kv_len_) store_pair(w[i][j], w[i][j + 1], row + column);
      }
    }
  }

  __forceinline__ void store_elements(int first, const float (&w)[kRows][kColumns]) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row_of(i) >= rows_) continue;
      OutElement* const row = elements_ + static_cast<long long>(row_of(i)) * kv_len_;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int column = first + column_of(0) + column_offset(j);
        if (column < kv_len_) from_float(w[i][j], row + column);
      }
    }
  }

  OutElement* elements_;  // [kQTile][kv_len], of which rows_ exist
  int kv_len_;
  int rows_;
};

// Of a thread's rows; those that do not exist have the last one's.
struct RowLse {
  float of[kRows];
};

TW_INLINE RowLse load_lse(const WeightsArguments& arguments, const SnippetArguments& call,
                          const QTile& q_tile) {
  const float* const rows = arguments.lse + q_tile.lse_begin(call, q_tile.b, q_tile.h);
  RowLse lse;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    lse.of[i] = rows[min(q_tile.first_row + row_of(i), call.q_len - 1)];
  }
  return lse;
}

// y: a kept score. The difference comes first: products with log2(e) would each be rounded. A score of
// -infinity weighs 0 whatever lse is, which is -infinity where nothing else is kept.
TW_INLINE float weight_of(float y, float lse) {
  constexpr float kLog2E = 1.44269504088896341f;
  return y == -kInfinity ? 0.0f : tw_math::exp2((y - lse) * kLog2E);
}

// s: q.k, becomes the weights. factor: of those that dropout keeps, else 1.
TW_INLINE void weigh_scores(const SnippetInputs& inputs, const Scales& scales, const Scaling& scaling,
                            const KvTile& tile, const RowLse& lse, float factor,
                            float (&s)[kRows][kColumns]) {
  scale_scores(inputs, scales, tile.first(), s);
  if (kHasScoreMod) {
    modify_scores<false>(inputs, tile.first(), scaling.factor, s);
  } else {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) s[i][j] *= scaling.factor;
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) s[i][j] = weight_of(s[i][j], lse.of[i]) * factor;
  }
  Draws draws = start_draws(inputs, tile.first());
  draws.draw();
  drop_weights(draws, s);
  if (kHasMaskMod && tile.partial()) drop(find_kept(inputs, tile), 0.0f, s);
}

TW_INLINE void write_weights(const WeightsArguments& arguments, const SnippetArguments& call,
                             unsigned shared_memory) {
  const QTile q_tile = find_q_tile(arguments, call, blockIdx.x);
  // The last block of rows of a mask may reach beyond q_len.
  if (q_tile.first_row >= call.q_len) return;

  __shared__ HeadPointers head;
  __shared__ tw_snippet::tw_Loads head_loads;
  const unsigned k_tile = shared_memory + kQBytes;
  load_q(shared_memory,
         head_of<const QElement>(arguments.q, q_tile.b, q_tile.h) +
             q_tile.first_row * arguments.q.row_stride,
         arguments.q.row_stride, call.q_len - q_tile.first_row);
  if (threadIdx.x == 0) {
    head = {q_tile, find_kv(k_of(arguments), q_tile), nullptr};
    head_loads = load_for_head(call, q_tile);
  }
  const WeightRows weights(arguments, q_tile, call);
  if (kMasked) weights.clear();
  Tiles tiles(arguments, q_tile, head, call.kv_len);
  __syncthreads();  // all threads see the head, the list of tiles and the zeros

  const auto load_ahead = [&](int i) {
    const KvTile tile = tiles.ahead(i);
    if (tile.exists()) {
      load_k(k_tile, kv_rows(head.k, k_of(arguments), head.q_tile, tile.first()),
             call.kv_len - tile.first());
    }
    commit_copies();
  };
  load_ahead(0);
  wait_for_groups<0>();
  settle_q(shared_memory);
  __syncthreads();  // Q is visible to all
  const QFragments q(shared_memory);
  const SnippetInputs inputs = snippet_inputs(call, head.q_tile, head_loads);
  const Scales scales = find_scales(arguments, inputs);
  const Scaling scaling = scaling_of(arguments, scales);
  const RowLse lse = load_lse(arguments, call, q_tile);
  const float factor = finish_dropout(call, head.q_tile, 1.0f);
#pragma unroll 1
  for (KvTile tile = tiles.ahead(0); tile.exists(); tile = tiles.ahead(0)) {
    wait_for_groups<0>();
    settle_k(k_tile);
    __syncthreads();  // K is visible to all
    tiles.refill();
    float s[kRows][kColumns];
    NoDraws none;
    score_tile(q, k_tile, s, none);
    __syncthreads();  // all threads have read K, and the list is refilled
    load_ahead(1);
    weigh_scores(inputs, scales, scaling, tile, lse, factor, s);
    weights.store(tile.first(), s);
    tiles.advance();
  }
}

}  // namespace tw_kernel
