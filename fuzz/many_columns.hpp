#pragma once

#include <cstdint>

#include "../verify/random.hpp"
#include "case.hpp"

namespace tilewright::verify::fuzz {

/// Gives a call that has few rows of q so many columns that kernels for GPUs cut them into parts:
/// of a packed one the sequence with most.
/// @param max_elements of all score matrices of the call
/// @return whether it did: false too where that would be too many elements
bool give_many_columns(FuzzCase& fuzz_case, std::int64_t max_elements, Random& random);

}  // namespace tilewright::verify::fuzz
