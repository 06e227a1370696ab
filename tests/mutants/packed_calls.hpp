#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "verify/problem.hpp"

namespace tilewright::mutants {

/// Packed specs whose plans and forward kernels differ in what they make of the templates.
std::vector<Spec> packed_specs();
/// One of them, whose snippets name b, h, q_token and kv_token.
Spec spec_that_names_tokens();

/// Launches of wrong_packed_call, at most.
inline constexpr int kPackedLaunches = 25;

/// What is wrong with packed calls, as a sentence; empty where nothing is: sequences of all kinds
/// against the reference, with positions of their own and in crowds too, then plans over other
/// plans, lengths that lie and lists over positions (fuzz/relation.hpp), and reports of buffers
/// that are not sorted.
std::string wrong_packed_call(const Attention& attention, const Toolchain& kernels);

/// What is wrong with a call's outputs by the reference, as a sentence; empty where nothing is.
/// @param decode AttentionOptions::decode
std::string wrong_by_reference(const verify::Problem& problem, const Attention& attention,
                               const Toolchain& kernels, bool decode = false);

}  // namespace tilewright::mutants
