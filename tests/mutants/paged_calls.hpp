#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/toolchain.hpp"

namespace tilewright::mutants {

/// K and V in pages, in pages with new rows outside of them, and in pages of blocks.
std::vector<Spec> paged_specs();

/// Launches of wrong_paged_call.
inline constexpr int kPagedLaunches = 3;

/// What is wrong with a paged call, as a sentence; empty where nothing is: between fences by the
/// reference, and with a freed page against a page of zeros.
std::string wrong_paged_call(const Attention& attention, const Toolchain& kernels);

}  // namespace tilewright::mutants
