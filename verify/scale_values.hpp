#pragma once

#include <cstdint>
#include <functional>

#include "../generator/snippet/snippet.hpp"
#include "../generator/spec/spec.hpp"
#include "../templates/abi/cpu.hpp"
#include "reference.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// Gives `count` values of a scale, the sink or dropout, in double: of rows of q, or of rows of k
/// and v for k_scale and v_scale, from `first` on. b and h are those that the snippet sees; of a
/// head of k and v, h is its first query head.
using ScaleValues =
    std::function<void(SnippetKind kind, const abi::SnippetArguments& arguments, std::int64_t b,
                       std::int64_t h, std::int64_t first, std::int64_t count, double* values)>;

/// The spec's own, compiled. What dropout drops is decided in float, as kernels do. Both must
/// outlive it.
ScaleValues scale_values(const FloatInterpretation& in_float,
                         const DoubleInterpretation& in_double);

/// Multiplies stored q, k and v by the spec's scales, and fills the sinks, out's scales and what
/// dropout draws.
/// @param first_b   number of the problem's first batch
/// @param new_rows  the last rows of k and v that have no scale
void apply_scales(const Spec& spec, const ScaleValues& scales,
                  const abi::SnippetArguments& arguments, std::int64_t first_b,
                  std::int64_t new_rows, DenseProblem& problem);

}  // namespace tilewright::verify
