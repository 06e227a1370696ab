#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/softmax.hpp"
#include "cuda/constants.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/store/row_ends.hpp"
#include "kernel/configuration.hpp"
#include "kernel/difference_values.hpp"
#include "kernel/scales.hpp"
#include "kernel/slope.hpp"

// What a warpgroup's scores of a q tile have in common: scales, score_mod's slope, and bounds of its reads.

namespace tw_kernel {

class QTileScores {
 public:
  // number: of the warpgroup. differences: address of values by the difference of indices.
  __forceinline__ QTileScores(const ForwardArguments& arguments, int number, unsigned differences)
      : arguments_(arguments), number_(number), differences_(differences) {}

  __forceinline__ void begin(const SnippetInputs& inputs) {
    scales_ = find_scales(arguments_, inputs);
    if (kHasSlope) slope_ = find_slope(inputs, scale(), to_log2());
    if (kHasLinearLoads) loads_in_bounds_ = all_load_in_bounds(inputs);
  }

  // What q.k is added to.
  __forceinline__ void start(float (&s)[kRows][kColumns]) const {
    if (kHasSlope) start_scores(slope_, s);
  }

  // Whether score_mod's reads stay inside its buffers in a tile.
  __forceinline__ bool loads_in_bounds(const SnippetInputs& inputs, int first, bool masked) const {
    return kLoadsWithBounds ? !masked && loads_in_bounds_
                            : kHasLinearLoads && tile_loads_in_bounds(inputs, first);
  }

  // What score_mod takes by the difference of indices, in the tile that begins with column `first`.
  __forceinline__ void find_differences(const SnippetInputs& inputs, int first) const {
    const int row_15 = inputs.q_tile->first_row + static_cast<int>(consumer_thread()) / 32 * 16 + 15 + inputs.q_offset;
    differences_.find([&](int place) {
      return tw_snippet::tw_difference_value(inputs.state, *inputs.head_loads, inputs.b, inputs.h, inputs.h_kv, row_15,
                                             first + place + inputs.kv_offset);
    });
  }

  // Makes scores of q.k. Returns what each is too small by.
  template <bool kInside>
  __forceinline__ float modify(const SnippetInputs& inputs, int first, bool loads_in_bounds,
                               float (&s)[kRows][kColumns]) const {
    scale_scores(inputs, scales_, first, s);
    if (kHasSlope) return slope_shift(inputs, slope_, first);
    if (kHasScoreMod) {
      const float scale = this->scale();
      if (loads_in_bounds) {
        modify_scores<kInside, true>(inputs, first, scale, s, differences_.from(0));
      } else {
        modify_scores<kInside>(inputs, first, scale, s, differences_.from(0));
      }
    } else if (scales_scores() && scale() != 1.0f) {  // what the exponent cannot take
      multiply_scores(scale(), s);
    }
    return 0.0f;
  }

  // The exponent of 2 that one unit of a score stands for: of q.k, where score_mod adds a slope.
  __forceinline__ float to_log2() const {
    const float of_result = scaling_of(arguments_, scales_).to_log2 * kResultFactor;
    return kHasSlope ? scale() * of_result : of_result;
  }

  // A score that is infinite as score_mod's text has it may be finite in the kernel's units. At the end
  // its row becomes what the text's is: NaN, or empty where the greatest is -infinity.
  __forceinline__ RowEnds end(const SnippetArguments& call, const SnippetInputs& inputs, Softmax softmax) const {
    GreatestScores greatest = greatest_scores(softmax, to_log2());
    if (kHasSlope) greatest = unclamp_slope(inputs, slope_, scale(), softmax, greatest);
    if (kHasSlope || (kScalesResultsUp && !kHasFixedMax)) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (fabsf(greatest.value[i]) < kInfinity || fabsf(softmax.max[i]) == kInfinity) continue;
        softmax.sum[i] = greatest.value[i] < 0.0f ? 0.0f : greatest.value[i] - greatest.value[i];
      }
    }
    return end_rows(arguments_, call, *inputs.q_tile, softmax, greatest);
  }

 private:
  // Whether score_mod's reads have bounds in tiles that need care, and in all of a q tile's where one may be
  // outside of its buffer. Under a mask, where tiles that need care are many, each tile is looked at.
  static constexpr bool kLoadsWithBounds = kHasLinearLoads && !kMasked && !kHasMaskMod;

  __forceinline__ float scale() const { return scaling_of(arguments_, scales_).factor * kScoreFactor; }

  // Whether score_mod's reads stay inside its buffers at this warpgroup's rows: in a tile, and in all
  // tiles, or those that need no care. Else columns that do not exist and the tile of an empty row
  // (after the last) are among them.
  __forceinline__ bool all_load_in_bounds(const SnippetInputs& inputs) const {
    const long long kv_len = inputs.kv_len;
    return columns_load_in_bounds(inputs, 0, kLoadsWithBounds ? kv_len - 1 : kv_len + 2 * kKvTile);
  }
  __forceinline__ bool tile_loads_in_bounds(const SnippetInputs& inputs, int first) const {
    return loads_in_bounds_ || columns_load_in_bounds(inputs, first, first + kKvTile - 1);
  }
  // In 64 bits: rows and columns that do not exist may lie beyond 2^31.
  __forceinline__ bool columns_load_in_bounds(const SnippetInputs& inputs, long long first_column,
                                              long long last_column) const {
    const long long row =
        static_cast<long long>(inputs.q_tile->first_row) + number_ * 64 + inputs.q_offset;
    return tw_snippet::tw_loads_in_bounds(inputs.state, inputs.b, inputs.h, inputs.h_kv, row, row + 63,
                                          first_column + inputs.kv_offset,
                                          last_column + inputs.kv_offset);
  }

  const ForwardArguments& arguments_;
  const int number_;
  const DifferenceValues differences_;
  Scales scales_;
  Slope slope_;
  bool loads_in_bounds_ = false;  // see all_load_in_bounds
};

}  // namespace tw_kernel
