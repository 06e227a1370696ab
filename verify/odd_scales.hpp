#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "attention_values.hpp"
#include "reference.hpp"

namespace tilewright::verify {

/// Whether a float32 of the scale is NaN or infinite.
bool is_odd_scale(double scale);
/// The same of out's scale, which kernels may take the reciprocal of: also below 2^-126, where that
/// is infinite.
bool is_odd_out_scale(double scale);

/// The rows of a call's results that a scale of NaN or infinity reaches: 1, else 0;
/// [batch, num_q_heads, q_len, 1]. A kernel multiplies a sum by a scale where the reference
/// multiplies the terms, so the two differ there.
struct ReachOfScales {
  Values scores;  ///< rows that keep an element with such a q_scale or k_scale
  Values out;     ///< those, rows that may share a tile with such a v_scale, heads of an out_scale
};

/// Nothing where no scale is odd.
/// @param block sides of the mask's tiles
std::optional<ReachOfScales> reach_of_odd_scales(const DenseProblem& problem,
                                                 const RowSnippets<float>& snippets,
                                                 const std::array<std::int64_t, 2>& block);

}  // namespace tilewright::verify
