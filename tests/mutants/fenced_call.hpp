#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"

namespace tilewright::mutants {

/// Specs whose kernels read and write in every way: q and k wider than v and the other way round,
/// rows in place and converted, buffers by each index that is not clamped.
std::vector<Spec> fenced_specs();

/// Calls a CPU's forward kernel with q, k, v, buffers, outputs and scratch memory that end right
/// before a page which may not be touched: what goes beyond one of them ends the process.
/// @return empty
std::string wrong_between_fences(const Attention& attention, const Toolchain& kernels);

/// A spec whose mask_mod reads a buffer of which tables are made.
Spec fenced_mask_spec();

/// Builds a block mask of a call whose buffer ends before such a page.
/// @return empty
std::string wrong_mask_between_fences(const Attention& attention, const Toolchain& kernels);

}  // namespace tilewright::mutants
