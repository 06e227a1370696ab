#pragma once

#include "abi/cuda_forward.hpp"
#include "attention/row_sum.hpp"
#include "cuda/attention/modify.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/language.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// Without scales and a sink nothing is added to a kernel. See scales.hpp.

namespace tw_kernel {

using tilewright::abi::cuda::Scaling;

// Functions, as each constant of a namespace would be a variable of the module.
TW_INLINE constexpr bool scales_scores() { return false; }
TW_INLINE constexpr bool changes_row_ends() { return false; }

struct Scales {};  // by value: a reference to it would be an address that ptxas keeps

TW_INLINE Scales find_scales(const ForwardArguments&, const SnippetInputs&) { return {}; }
TW_INLINE const Scaling& scaling_of(const ForwardArguments& arguments, Scales) {
  return arguments.scaling;
}
TW_INLINE const Scaling& find_scaling(const ForwardArguments& arguments, const SnippetArguments&,
                                      const QTile&) {
  return arguments.scaling;
}
TW_INLINE void scale_scores(const SnippetInputs&, Scales, int, float (&)[kRows][kColumns]) {}
TW_INLINE void scale_weights(const SnippetInputs&, int, float (&)[kRows][kColumns]) {}
TW_INLINE void finish_row(const SnippetArguments&, const QTile&, int, int, float, RowSum&) {}

}  // namespace tw_kernel
