#pragma once

#include "abi/cuda_backward.hpp"
#include "cuda/backward/gather.hpp"
#include "cuda/backward/passing_tile.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/backward_dropout.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"
#include "snippet/derivative.hpp"
#include "snippet/snippets.hpp"

// From a thread's scores and its products dO V^T of one tile to its weights and the gradients of its
// scores:
//
//   P  = e^(y - lse)                  y is the score after score_mod, and f' its derivative
//   dY = P * (dO V^T - delta)
//   dX = dY * f'
//
// With dropout, the weights that met V replace P for dV, and dO V^T is multiplied by what they are of P.

namespace tw_kernel {

using tilewright::abi::cuda::RowFacts;

// Whether dX is not dY.
constexpr bool kMultipliesDy = kHasScoreMod && !tw_snippet::tw_adds_to_score;

// Which elements of a tile take part: bit j of word i.
struct KeptElements {
  unsigned word[kRows];
};
static_assert(kColumns <= 32, "a word holds a row");

// Columns that mask_mod is compiled for at once.
TW_INLINE constexpr int kept_group() {
  for (int size = kMaskUnroll; size > 1; --size) {
    if (size % 2 == 0 && kColumns % size == 0) return size;
  }
  return 1;
}

// passing: how many of the passing rows exist.
template <bool kOwnsRows, typename Tile>
TW_INLINE KeptElements find_kept_elements(const ElementInputs& inputs, const Tile& tile, int passing) {
  KeptElements kept = {};
#pragma unroll 1
  for (int group = 0; group < kColumns; group += kept_group()) {
    const ElementIndices<kOwnsRows> at(inputs, tile.first() + column_offset(group));
#pragma unroll
    for (int j = 0; j < kept_group(); ++j) {
      const bool exists = at.passing(j) < passing;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        bool keep = exists && has_own_row(tile, i);
        if (kHasMaskMod && is_partial(tile, i)) {
          keep = keep && tw_snippet::tw_mask_mod(inputs.state, {}, inputs.b, inputs.h, inputs.h_kv,
                                                 at.q_idx(i, j), at.kv_idx(i, j));
        }
        kept.word[i] |= static_cast<unsigned>(keep) << (group + j);
      }
    }
  }
  return kept;
}

TW_INLINE void drop_elements(const KeptElements& kept, float (&x)[kRows][kColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) x[i][j] = (kept.word[i] >> j & 1u) != 0 ? x[i][j] : 0.0f;
  }
}

// y: the score after score_mod; in units of the exponent where there is none and nothing is exact.
TW_INLINE float element_weight(float y, float lse) {
  if (kExactSoftmax) return tw_math::exp2((y - lse) * kLog2E);
  return tw_math::exp2(kHasScoreMod ? y * kLog2E - lse : y - lse);
}

// The facts of the rows of q that a block owns.
struct FactsOfRows {
  struct Column {};
  RowFacts of[kRows];

  __forceinline__ Column column(int) const { return {}; }
  __forceinline__ RowFacts row(Column, int i) const { return of[i]; }
};

// Those that pass by, in shared memory.
struct FactsOfColumns {
  using Column = RowFacts;
  unsigned facts;

  __forceinline__ Column column(int j) const {
    const float2 x = load_shared_2(facts + (column_of(0) + column_offset(j)) * sizeof(RowFacts));
    return {x.x, x.y};
  }
  __forceinline__ RowFacts row(const Column& column, int) const { return column; }
};

// s: q.k, becomes P for dV; d: dO V^T, becomes dX. Gradients of buffers and scalars go to `gathered`.
template <bool kOwnsRows, typename Tile, typename Facts>
TW_INLINE void differentiate_tile(const ElementInputs& inputs, const Tile& tile, const Facts& facts,
                                  const KeptElements& kept, bool some_dropped, const DroppedProducts& products,
                                  float (&s)[kRows][kColumns], float (&d)[kRows][kColumns],
                                  Gathered<kOwnsRows>& gathered) {
  const ElementIndices<kOwnsRows> at(inputs, tile.first());
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const typename Facts::Column column = facts.column(j);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const RowFacts row = facts.row(column, i);
      const float x = s[i][j] * inputs.factor;
      float y = x, slope = 1.0f;
      if (kHasScoreMod) {
        y = tw_snippet::tw_differentiate(inputs.state, x, inputs.b, inputs.h, inputs.h_kv,
                                         at.row_index(i, j), at.column_index(i, j), slope);
      }
      float p = element_weight(y, row.lse);
      if (Gathered<kOwnsRows>::kCount > 0) {
        if (some_dropped) p = (kept.word[i] >> j & 1u) != 0 ? p : 0.0f;
        const float dy = p == 0.0f ? 0.0f : p * (products.dropped(i, j, d[i][j]) - row.delta);
        gathered.add(inputs, i, j, x, dy, at.row_index(i, j), at.column_index(i, j));
      }
      // f' may be infinite or NaN where nothing is kept.
      const float dx = p * (products.dropped(i, j, d[i][j]) - row.delta) * slope;
      d[i][j] = kMultipliesDy && p == 0.0f ? 0.0f : dx;
      s[i][j] = products.dropped(i, j, p);
    }
  }
  if (some_dropped) {
    drop_elements(kept, s);
    drop_elements(kept, d);
  }
}

}  // namespace tw_kernel
