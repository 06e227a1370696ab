#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/splits.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/q_tile_scores.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/work.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/atomics.hpp"
#include "cuda/ptx/special_functions.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/store/row_ends.hpp"
#include "kernel/configuration.hpp"
#include "kernel/item_parts.hpp"

// A warpgroup has visited a part of the kv tiles of its rows. It stores them as its threads have them, so that
// the same threads of another block read them back whole lines at a time. The warpgroup whose part comes last adds
// up all parts in their order, whichever block it is of, and ends the rows as if it had visited all tiles.

namespace tw_kernel {

constexpr int kValuesOfThread = kRows * kOutColumns;
constexpr int kSplitGroupValues = tilewright::abi::kSplitGroupRows * kValuePad;
constexpr int kGroupFloats = static_cast<int>(tilewright::abi::split_group_floats(kValuePad));
static_assert(kValuesOfThread * kWarpgroup == kSplitGroupValues && kOutColumns % 4 == 0);

// The rows of a part that are one warpgroup's.
class StoredPart {
 public:
  __forceinline__ StoredPart(const ForwardArguments& arguments, unsigned item, int consumer)
      : begin_(arguments.splits.partial +
               (static_cast<long long>(item) * kConsumers + consumer) * kGroupFloats),
        thread_(static_cast<int>(consumer_thread() % kWarpgroup)) {}

  // Four values of row i, from column j on.
  __forceinline__ float4* values(int i, int j) const {
    return reinterpret_cast<float4*>(begin_) + (i * kOutColumns + j) / 4 * kWarpgroup + thread_;
  }
  // Of row i: its maximum, and this thread's share of its sum.
  __forceinline__ float2* end(int i) const {
    return reinterpret_cast<float2*>(begin_ + kSplitGroupValues) + i * kWarpgroup + thread_;
  }

 private:
  float* begin_;
  int thread_;
};

TW_INLINE void store_part(const StoredPart& part, const Softmax& softmax,
                          const float (&out)[kRows][kOutColumns]) {
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    *part.end(i) = {softmax.max[i], softmax.sum[i]};
    // Nothing kept: 0 whatever V holds, as the part has the weight 0 then.
    const bool empty = row_sum(softmax, i) == 0.0f;
#pragma unroll
    for (int j = 0; j < kOutColumns; j += 4) {
      *part.values(i, j) = {empty ? 0.0f : out[i][j], empty ? 0.0f : out[i][j + 1],
                            empty ? 0.0f : out[i][j + 2], empty ? 0.0f : out[i][j + 3]};
    }
  }
}

// Whether this warpgroup's part comes last. What the others have written is then visible to all its threads.
TW_INLINE bool part_comes_last(const ForwardArguments& arguments, const Part& part, int consumer) {
  const unsigned q_tile = part.item / static_cast<unsigned>(part.parts);
  sync_named<kWarpgroup>(kOwnBarrier + consumer);  // all of the part is written
  bool comes_last = false;
  if (consumer_thread() % kWarpgroup == 0) {
    unsigned& arrived = arguments.splits.arrived[q_tile * kConsumers + consumer];
    comes_last = add_and_synchronise(&arrived, 1u) + 1 == static_cast<unsigned>(part.parts);
    if (comes_last) arrived = 0;  // for the next launch
  }
  return any_of_warpgroup(kOwnBarrier + consumer, comes_last);
}

// Equal infinities differ by 0.
TW_INLINE float weight_of_part(float max, float greatest, float to_log2) {
  return max == greatest ? 1.0f : tw_math::exp2((max - greatest) * to_log2);
}

TW_INLINE void add_parts(const ForwardArguments& arguments, const Part& part, int consumer, float to_log2,
                         Softmax& softmax, float (&out)[kRows][kOutColumns]) {
  const unsigned first = part.item - static_cast<unsigned>(part.number);
#pragma unroll 1
  for (int k = 0; k < part.parts; ++k) {
    const StoredPart stored(arguments, first + k, consumer);
#pragma unroll
    for (int i = 0; i < kRows; ++i) softmax.max[i] = fmaxf(softmax.max[i], __ldcg(stored.end(i)).x);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    softmax.sum[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < kOutColumns; ++j) out[i][j] = 0.0f;
  }
#pragma unroll 1
  for (int k = 0; k < part.parts; ++k) {
    const StoredPart stored(arguments, first + k, consumer);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float2 end = __ldcg(stored.end(i));
      const float weight = weight_of_part(end.x, softmax.max[i], to_log2);
      softmax.sum[i] += end.y * weight;
#pragma unroll
      for (int j = 0; j < kOutColumns; j += 4) {
        const float4 x = __ldcg(stored.values(i, j));
        out[i][j] += x.x * weight;
        out[i][j + 1] += x.y * weight;
        out[i][j + 2] += x.z * weight;
        out[i][j + 3] += x.w * weight;
      }
    }
  }
}

// The rows end when their parts are one.
TW_INLINE RowEnds end_run(const QTileScores&, const SnippetArguments&, const SnippetInputs&, const Softmax&) {
  return {};
}

// Whether the rows are complete, and this warpgroup's to store.
TW_INLINE bool join_parts(const ForwardArguments& arguments, const SnippetArguments& call,
                          const WorkItem& work, int consumer, const QTileScores& scores,
                          const SnippetInputs& inputs, Softmax& softmax,
                          float (&out)[kRows][kOutColumns], RowEnds& ends) {
  const Part& part = work;
  store_part(StoredPart(arguments, part.item, consumer), softmax, out);
  if (!part_comes_last(arguments, part, consumer)) return false;
  add_parts(arguments, part, consumer, scores.to_log2(), softmax, out);
  ends = scores.end(call, inputs, softmax);
  return true;
}

}  // namespace tw_kernel
