#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/toolchain.hpp"

namespace tilewright::mutants {

/// Specs that a GPU's decode kernel serves: over pages and dense, in 16 bits and over one byte,
/// with new rows, sinks, and lists of tiles by head.
std::vector<Spec> decode_specs();

/// Launches of wrong_decode_call.
inline constexpr int kDecodeLaunches = 2;

/// What is wrong with calls of few rows of q by the reference, as a sentence; empty where nothing
/// is. Items of the longer sequences are divided over several blocks of threads.
std::string wrong_decode_call(const Attention& attention, const Toolchain& kernels);

}  // namespace tilewright::mutants
