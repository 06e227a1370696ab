#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "../generator/spec/spec.hpp"
#include "../runtime/library/kernel_library.hpp"
#include "parts.hpp"
#include "problem.hpp"
#include "reference.hpp"
#include "scale_values.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// A spec's snippets, compiled for this machine's CPU. None where the spec has no snippets.
struct Interpretations {
  /// @throws Error as load_kernel
  Interpretations(const Spec& spec, const Toolchain& toolchain, bool wants_checked);

  /// None where the spec has neither scales nor a sink. Valid as long as this is.
  ScaleValues scales(const Spec& spec) const;

  std::optional<FloatInterpretation> in_float;
  std::optional<DoubleInterpretation> in_double;
  std::optional<CheckedInterpretation> checked;
};

/// A part's rows of scores through the snippets, and the positions that the call lists. All
/// arguments outlive them.
RowSnippets<float> float_snippets(const Interpretations& interpretations, const Problem& problem,
                                  const Parts::Piece& piece);

/// Scores in double, but what is kept is decided in float: a truth has no rounding error to allow
/// for, so the reference must take the kernel's side of every `<`.
/// @param disagreements how many elements mask_mod decides otherwise in double is added to it
RowSnippets<double> double_snippets(const Spec& spec, const Interpretations& interpretations,
                                    const Problem& problem, const Parts::Piece& piece,
                                    std::atomic<std::int64_t>& disagreements);

}  // namespace tilewright::verify
