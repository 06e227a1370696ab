#pragma once

#include "cuda/backward/elements.hpp"
#include "cuda/backward/element_inputs.hpp"
#include "cuda/hopper/backward/diagonals.hpp"
#include "cuda/hopper/backward/gather.hpp"
#include "cuda/hopper/backward/layout.hpp"
#include "cuda/hopper/backward/pipeline.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/store_transposed.hpp"
#include "cuda/ptx/unknown_zero.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/backward_dropout.hpp"
#include "kernel/configuration.hpp"
#include "kernel/difference_values.hpp"
#include "snippet/derivative.hpp"

// From a thread's scores and products of one tile to what the other products multiply (elements.hpp has
// the formulas), in two steps, as dP^T comes later than S^T.

namespace tw_kernel {

// Registers are short if each weight is multiplied by f', if terms are summed along diagonals, or if a thread adds each
// term to memory.
constexpr bool kIsTight = kMultipliesDy || kOwnSums + kRowReads < tw_slot_count;

// When P^T is packed to 16 bits. Late: together with dX^T. If P f' is P, the scores' registers hold P until then.
// Early: before dP arrives; tiles of 128 rows then wait for both products, for want of registers. Measured: kernels
// that gather terms spill least if they pack late, except for terms of rows in tiles of 128. Sums of a head alone spill
// neither way in tiles of 64, and run faster if they pack early. Warpgroups that share the head dimension have half of
// the scores each, and write P to shared memory at once.
constexpr bool kPacksLate = !kIsWide && (kSumsAreOwn ? kKvTile == 128 || kSumsColumns
                                         : kGathers  ? kKvTile == 64
                                                     : !kMultipliesDy && kKvTile == 128);
constexpr bool kWaitsForBoth = !kPacksLate && kKvTile == 128;

// A thread's facts of a tile: lse of its groups, then delta. Where registers are left, it asks for each kAhead groups
// before it takes it. Made before a product is issued, it does not wait for the first ones: a load from shared memory
// waits for products that were issued before it.
class TileFacts {
 public:
  // facts: address of lse of the warpgroup's first row
  __forceinline__ explicit TileFacts(unsigned facts) : facts_(facts) {
#pragma unroll
    for (int i = 0; kIsAhead && i < kAhead; ++i) ahead_[i] = load(i);
  }
  __forceinline__ float4 lse(int group) { return take(group); }
  __forceinline__ float4 delta(int group) { return take(kColumnGroups + group); }

 private:
  // If elements wait for both products, they take lse and delta alternately, not in the order of loads.
  static constexpr bool kIsAhead = !DroppedProducts::kDrops && !kWaitsForBoth && (kKvTile == 64 || !kIsTight);
  static constexpr int kAhead = 4;
  static_assert(kAhead <= 2 * kColumnGroups);

  __forceinline__ float4 take(int i) {
    if (!kIsAhead) return load(i);
    const float4 taken = ahead_[i % kAhead];
    if (i + kAhead < 2 * kColumnGroups) ahead_[i % kAhead] = load(i + kAhead);
    return taken;
  }
  __forceinline__ float4 load(int i) const {
    const unsigned group = i < kColumnGroups ? i * 64 : kFactsBytes + (i - kColumnGroups) * 64;
    return load_shared_4(facts_ + group + lane() % 4 * 16);
  }

  unsigned facts_;
  float4 ahead_[kAhead];
};
TW_INLINE float fact_of(const float4& facts, int j) {
  return j == 0 ? facts.x : j == 1 ? facts.y : j == 2 ? facts.z : facts.w;
}

// Fragments of the first operand of the next product: a score's accumulators are where that operand's
// elements must be, so nothing moves between lanes.
TW_INLINE void pack_group(const float (&x)[kRows][4], unsigned* packed) {
  packed[0] = pack<QElement>(x[0][0], x[0][1]);
  packed[1] = pack<QElement>(x[1][0], x[1][1]);
  packed[2] = pack<QElement>(x[0][2], x[0][3]);
  packed[3] = pack<QElement>(x[1][2], x[1][3]);
}

// Columns of a group: weights P for dV, and s, q.k, becomes P f', the factor of dX.
// kDrops: `kept` says which elements take part.
template <bool kDrops>
TW_INLINE void weigh_group(const ElementInputs& inputs, const ElementIndices<false>& at, TileFacts& facts,
                           const KeptElements& kept, const DroppedProducts& products,
                           DifferenceValues::Reader& differences, int group, float (&s)[kRows][kColumns],
                           float (&weights)[kRows][4]) {
  const float4 lse = facts.lse(group);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int j = group * 4 + k;
    differences.advance(j);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float x = s[i][j] * inputs.factor;
      float y = x, slope = 1.0f;
      if (kHasScoreMod) {
        y = tw_snippet::tw_differentiate<kHasLinearLoads && !kDrops>(inputs.state, x, inputs.b, inputs.h, inputs.h_kv,
                                                                     at.row_index(i, j), at.column_index(i, j), slope,
                                                                     differences.of(i, j));
      }
      float weight = element_weight(y, fact_of(lse, k));
      if (kDrops) weight = (kept.word[i] >> j & 1u) != 0 ? weight : 0.0f;
      weights[i][k] = products.dropped(i, j, weight);
      // f' may be infinite where the weight is 0, and NaN where nothing is kept.
      constexpr bool kAsks = kMultipliesDy && (kDrops || !tw_snippet::tw_slope_is_bounded);
      s[i][j] = kAsks && weight == 0.0f ? 0.0f : weight * slope;
    }
  }
}

// dX^T of a group, from w, P f', and d, dO V^T: as fragments, and to shared memory as dX.
// to: where the thread's matrices of dX begin (gradient_address)
TW_INLINE void differentiate_group(const ElementInputs& inputs, const ElementIndices<false>& at,
                                   const DroppedProducts& products, const float (&w)[kRows][kColumns],
                                   const float (&d)[kRows][kColumns], TileFacts& facts, unsigned to, int group,
                                   unsigned* dx, GatheredTerms& gathered) {
  const float4 delta = facts.delta(group);
  float gradients[kRows][4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int j = group * 4 + k;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      gradients[i][k] = w[i][j] * (products.dropped(i, j, d[i][j]) - fact_of(delta, k));
    }
  }
  unsigned matrices[4];
  pack_group(gradients, matrices);
  store_matrices_transposed(to + group * 16 * kPanelRowBytes, matrices);
#pragma unroll
  for (int k = 0; k < 4; ++k) dx[group * 4 + k] = matrices[k];
  gathered.add(inputs, at, group, w, gradients);
  // The last rows' sums are taken while products run.
  if (kDiagonalReads > 0 && group % kDiagonalGroups == kDiagonalGroups - 1 && group != kColumnGroups - 1) {
    gathered.end_rows(inputs, at.passing(0) - column_of(0) + (group + 1) * 16 - kDiagonalRows);
  }
}

// Groups from kFirst to before kLast. p: fragments of P^T, unless kPacksLate
template <bool kDrops, int kFirst, int kLast>
TW_INLINE void weigh_groups_of(const ElementInputs& inputs, const KvTile& tile, TileFacts& facts,
                          const KeptElements& kept, const DroppedProducts& products,
                          const DifferenceValues& differences, float (&s)[kRows][kColumns],
                          unsigned (&p)[kColumns]) {
  const ElementIndices<false> at(inputs, tile.first());
  DifferenceValues::Reader values = differences.from(kFirst * 4);
#pragma unroll
  for (int group = kFirst; group < kLast; ++group) {
    float weights[kRows][4];
    weigh_group<kDrops>(inputs, at, facts, kept, products, values, group, s, weights);
    if (!kPacksLate) pack_group(weights, p + group * 4);
  }
}

template <int kFirst, int kLast>
TW_INLINE void weigh_groups(const ElementInputs& inputs, const KvTile& tile, TileFacts& facts, bool some_dropped,
                            const KeptElements& kept, const DroppedProducts& products,
                            const DifferenceValues& differences, float (&s)[kRows][kColumns],
                            unsigned (&p)[kColumns]) {
  if (some_dropped) {
    weigh_groups_of<true, kFirst, kLast>(inputs, tile, facts, kept, products, differences, s, p);
  } else {
    weigh_groups_of<false, kFirst, kLast>(inputs, tile, facts, kept, products, differences, s, p);
  }
}

// p: fragments of P^T where kPacksLate
TW_INLINE void differentiate_tile(const ElementInputs& inputs, const KvTile& tile, const DroppedProducts& products,
                                  const float (&w)[kRows][kColumns], const float (&d)[kRows][kColumns],
                                  TileFacts& facts, unsigned to, unsigned (&dx)[kColumns],
                                  unsigned (&p)[kColumns], GatheredTerms& gathered) {
  // The compiler would keep what score_mod made of the indices, for which there are no registers.
  const ElementIndices<false> at(inputs, kGathers ? as_unknown(tile.first()) : tile.first());
#pragma unroll
  for (int group = 0; group < kColumnGroups; ++group) {
    if (kPacksLate) {
      float weights[kRows][4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int j = group * 4 + k;
#pragma unroll
        for (int i = 0; i < kRows; ++i) weights[i][k] = products.dropped(i, j, w[i][j]);
      }
      pack_group(weights, p + group * 4);
    }
    differentiate_group(inputs, at, products, w, d, facts, to, group, dx, gathered);
  }
}

// Both, where kWaitsForBoth.
template <bool kDrops>
TW_INLINE void weigh_and_differentiate_tile(const ElementInputs& inputs, const KvTile& tile, TileFacts& facts,
                                            const KeptElements& kept, const DroppedProducts& products,
                                            const DifferenceValues& differences, float (&s)[kRows][kColumns],
                                            const float (&d)[kRows][kColumns], unsigned to,
                                            unsigned (&dx)[kColumns], unsigned (&p)[kColumns],
                                            GatheredTerms& gathered) {
  const ElementIndices<false> at(inputs, tile.first());
  DifferenceValues::Reader values = differences.from(0);
  const ElementIndices<false> again(inputs, kGathers ? as_unknown(tile.first()) : tile.first());
#pragma unroll
  for (int group = 0; group < kColumnGroups; ++group) {
    float weights[kRows][4];
    weigh_group<kDrops>(inputs, at, facts, kept, products, values, group, s, weights);
    pack_group(weights, p + group * 4);
    differentiate_group(inputs, again, products, s, d, facts, to, group, dx, gathered);
  }
}

// Where the matrices of a thread's group 0 of dX go: the warpgroup's rows of q 0 to 15, columns of the warp.
TW_INLINE unsigned gradient_address(const Shared& shared, int consumer) {
  constexpr unsigned kFirst = kIsWide ? kScoreRows * kPanelRowBytes : kTilePanelBytes;
  const unsigned row = lane() % 8 + lane() / 16 * 8;
  const unsigned chunk = consumer_thread() % kWarpgroup / 32 * 2 + lane() / 8 % 2;
  return shared.gradients(0) + consumer * kFirst + row * kPanelRowBytes + (chunk ^ row % 8) * 16;
}

}  // namespace tw_kernel
