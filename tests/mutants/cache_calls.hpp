#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/toolchain.hpp"

namespace tilewright::mutants {

/// Pools of pages in k and v's own dtype, in one byte with scales, and in blocks.
std::vector<Spec> cache_specs();

/// Launches of wrong_cache_calls.
inline constexpr int kCacheLaunches = 4;

/// What append, merge and, where k and v have one byte, quantise leave that is not what their
/// definitions say, as a sentence; empty where nothing is. The attention has their kernels.
std::string wrong_cache_calls(const Attention& attention, const Toolchain& kernels);

/// Scales that name a sequence's positions and lengths.
Spec spec_with_scales_of_sequences();

/// The same of quantise by a plan, one of whose pages is freed, into a pool between fences.
std::string wrong_quantise_by_plan(const Attention& attention, const Toolchain& kernels);

}  // namespace tilewright::mutants
