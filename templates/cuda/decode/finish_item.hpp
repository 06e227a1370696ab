#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/decode.hpp"
#include "attention/row_sum.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/decode/copies_ahead.hpp"
#include "cuda/decode/sum_of_warps.hpp"
#include "cuda/decode/segment.hpp"
#include "cuda/element.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/atomics.hpp"
#include "cuda/ptx/convert.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "kernel/configuration.hpp"
#include "kernel/decode_items.hpp"
#include "kernel/engine.hpp"
#include "kernel/max_scores.hpp"
#include "kernel/scales.hpp"

// The end of a segment. A whole item goes to out; parts of one go to the caller's memory, and the block whose
// part comes last adds them up in the order of their columns, whichever block that is.

namespace tw_kernel {

// What a row of O is divided by. The weight of a sequence's only key may be near 1: the row is that key's
// value only if its sum is rounded as the weight in O is.
TW_INLINE float divisor_of(const SnippetArguments& call, const QTile& q_tile, float sum) {
  if (q_tile.kv_len(call) != 1) return sum;
  WeightElement rounded;
  from_float(sum, &rounded);
  return to_float(rounded);
}

// A row's greatest score, in units of score_mod's results.
TW_INLINE float greatest_score(const ForwardArguments& arguments, const SnippetArguments& call,
                               const QTile& q_tile, const RowEnd& end) {
  const float to_log2 = find_scaling(arguments, call, q_tile).to_log2;
  return kHasScoreMod ? end.max * (to_log2 * kLn2) : end.max * to_log2 * kLn2;
}

// What a row of O is divided by, with the sink and the scale of v. row: of the sequence. h: its head
TW_INLINE RowSum total_of_row(const ForwardArguments& arguments, const SnippetArguments& call,
                              const QTile& q_tile, int row, int h, const RowEnd& end) {
  const float greatest = greatest_score(arguments, call, q_tile, end);
  const float divisor = divisor_of(call, q_tile, end.sum);
  RowSum total = {greatest, end.sum, tw_math::reciprocal(divisor), end.sum == 0.0f};
  if constexpr (changes_row_ends()) finish_row(call, q_tile, row, h, divisor, total);
  return total;
}

// Four columns of row r of an item's tile. o: relative to end.max. Called where code is cold, so it stands
// there once.
__noinline__ void store_out(const ForwardArguments& arguments, const SnippetArguments& call,
                         const QTile& q_tile, int group, int row, int column, const float4& o,
                         const RowEnd& end) {
  const int q_row = row / group, h = q_tile.h + row % group;
  if (kHasLse && column == 0) {
    const RowSum total = total_of_row(arguments, call, q_tile, q_row, h, end);
    arguments.lse[q_tile.lse_begin(call, q_tile.b, h) + q_row] =
        total.sum == 0.0f ? -kInfinity : total.greatest + ::logf(total.sum);
  }
  if (has_max_scores() && column == 0) {
    store_max_score(arguments, q_tile.lse_begin(call, q_tile.b, h) + q_row, end.sum,
                    greatest_score(arguments, call, q_tile, end));
  }
  if (kValueDim != kValuePad && column >= kValueDim) return;
  // Nothing kept: 0 whatever V holds. A NaN sum is no empty row and stays.
  bool empty = end.sum == 0.0f;
  float factor = empty ? 0.0f : tw_math::reciprocal(divisor_of(call, q_tile, end.sum));
  if constexpr (changes_row_ends()) {
    const RowSum total = total_of_row(arguments, call, q_tile, q_row, h, end);
    empty = total.empty;
    factor = total.factor;
  }
  const float values[4] = {o.x, o.y, o.z, o.w};
  OutElement* const to = head_of<OutElement>(arguments.out, batch_of_rows(q_tile), h) +
                         (q_tile.q_begin() + q_row) * arguments.out.row_stride + column;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const float a = empty ? 0.0f : values[i] * factor, b = empty ? 0.0f : values[i + 1] * factor;
    if (kAligned) {
      store_pair(a, b, to + i);
    } else {
      from_float(a, to + i);
      from_float(b, to + i + 1);
    }
  }
}

constexpr int kWeights = kTeams * kRowsOfPass * kPassStride;  // that shared memory has room for

// Where a partial result is in DecodeWork::partial and ends, counted in rows.
TW_INLINE long long partial_rows(int block, bool begins_item) {
  return (2ll * block + (begins_item ? 1 : 0)) * kQTile;
}

TW_INLINE void store_partial(const DecodeWork& work, long long rows, int row, int column,
                             const float4& o, const RowEnd& end) {
  if (column == 0) {
    work.ends[(rows + row) * 2] = end.max;
    work.ends[(rows + row) * 2 + 1] = end.sum;
  }
  if (kValueDim != kValuePad && column >= kValueDim) return;
  *reinterpret_cast<float4*>(work.partial + (rows + row) * kValueDim + column) = o;
}

// The parts of an item, in the order of their columns: the first is the second of its block's.
struct ItemParts {
  int first_block;
  int count;
  __forceinline__ long long rows_of(int part) const {
    return partial_rows(first_block + part, part == 0);
  }
};

// Whether this block's part comes last. What the other blocks have written is then visible to all its
// threads. By all threads of the block.
TW_INLINE bool part_comes_last(const DecodeWork& work, const ItemParts& parts) {
  __shared__ bool comes_last;
  __syncthreads();  // all of the block's part is written
  if (threadIdx.x == 0) {
    unsigned& arrived = work.arrived[parts.first_block];
    comes_last = add_and_synchronise(&arrived, 1u) + 1 == static_cast<unsigned>(parts.count);
    if (comes_last) arrived = 0;  // for the next launch
  }
  __syncthreads();  // the block knows
  return comes_last;
}

// The ends of a row's parts as one, and the weights of the parts: all lanes of a warp together.
// weights: [parts.count], in shared memory
TW_INLINE RowEnd weigh_parts(const DecodeWork& work, const ItemParts& parts, int row, float to_log2,
                             float* weights) {
  const auto first = static_cast<int>(lane());
  RowEnd own = {-kInfinity, 0.0f};  // of this lane's parts
#pragma unroll 1
  for (int part = first; part < parts.count; part += 32) {
    const float2 end = __ldcg(reinterpret_cast<const float2*>(work.ends) + parts.rows_of(part) + row);
    const float greatest = fmaxf(own.max, end.x);
    own = {greatest, own.sum * weight_of(own.max, greatest, to_log2) +
                         end.y * weight_of(end.x, greatest, to_log2)};
    weights[part] = end.x;
  }
  float greatest = own.max;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    greatest = fmaxf(greatest, __shfl_xor_sync(~0u, greatest, distance));
  }
  float sum = own.sum * weight_of(own.max, greatest, to_log2);
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    sum += __shfl_xor_sync(~0u, sum, distance);
  }
#pragma unroll 1
  for (int part = first; part < parts.count; part += 32) {
    weights[part] = weight_of(weights[part], greatest, to_log2);
  }
  return {greatest, sum};
}

// Adds up the parts of an item of `count` rows. By all threads of the block.
// ends: [kQTile], weights: [kWeights], in shared memory
TW_INLINE void merge_parts(const ForwardArguments& arguments, const SnippetArguments& call,
                           const QTile& q_tile, const ItemParts& parts, int group, int count, int team,
                           RowEnd* ends, float* weights) {
  constexpr int kColumns4 = kValueDim / 4;
  const DecodeWork& work = work_of(arguments);
  const float to_log2 = find_scaling(arguments, call, q_tile).to_log2;
  const int rows_at_once = min(count, kWeights / parts.count);
#pragma unroll 1
  for (int first = 0; first < count; first += rows_at_once) {
    const int rows = min(rows_at_once, count - first);
#pragma unroll 1
    for (int row = team; row < rows; row += kTeams) {
      const RowEnd end =
          weigh_parts(work, parts, first + row, to_log2, weights + row * parts.count);
      if (lane() == 0) ends[row] = end;
    }
    __syncthreads();  // the weights are there
#pragma unroll 1
    for (int id = threadIdx.x; id < rows * kColumns4; id += kBlockThreads) {
      const int row = id / kColumns4, column = id % kColumns4 * 4;
      const float* const of_row = weights + row * parts.count;
      const float* const partial = work.partial + (first + row) * kValueDim + column;
      float4 o = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 8  // reads that are under way together
      for (int part = 0; part < parts.count; ++part) {
        const float4 x =
            __ldcg(reinterpret_cast<const float4*>(partial + parts.rows_of(part) * kValueDim));
        const float w = of_row[part];
        o = {o.x + x.x * w, o.y + x.y * w, o.z + x.z * w, o.w + x.w * w};
      }
      store_out(arguments, call, q_tile, group, first + row, column, o, ends[row]);
    }
    __syncthreads();  // no thread reads the weights any more
  }
}

TW_INLINE void finish_segment(const ForwardArguments& arguments, const SnippetArguments& call,
                              const WarpItem& item, const tilewright::abi::UnitCuts& cuts, int group,
                              int team, const Softmax& softmax, const SumsOfWarps& sums,
                              float (&out)[kRows][kOutColumns]) {
  const DecodeWork& work = work_of(arguments);
  const QTile& q_tile = item.head.q_tile;
  const Segment& segment = item.segment;
  const int count = q_tile.q_len(call) * group;  // rows
  const bool whole = segment.is_whole();
  const long long rows = partial_rows(static_cast<int>(blockIdx.x), segment.first == 0);
  sum_warps(softmax, sums, count, team, out,
            [&](int row, int column, const float4& o, const RowEnd& end) {
              if (whole) {
                store_out(arguments, call, q_tile, group, row, column, o, end);
              } else {
                store_partial(work, rows, row, column, o, end);
              }
            });
  if (whole) return;
  const int first_block = cuts.block_of(segment.begin);
  const ItemParts parts = {first_block,
                           cuts.block_of(segment.begin + segment.units - 1) - first_block + 1};
  if (!part_comes_last(work, parts)) return;
  merge_parts(arguments, call, q_tile, parts, group, count, team, sums.ends[0], &sums.rows[0][0][0]);
}

}  // namespace tw_kernel
