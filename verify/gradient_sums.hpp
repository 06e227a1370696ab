#pragma once

#include <vector>

#include "gradient_sweep.hpp"
#include "parts.hpp"

namespace tilewright::verify {

/// Adds up gradients of buffers and scalars.
/// @param in_float each sum is rounded to float32
void add_cells(const std::vector<double>& part, bool in_float, std::vector<double>& sums);

/// Adds a part's gradients to those of the whole call, where the part's rows lie there.
void add_part(const GradientValues& part, const Parts::Piece& piece, bool in_float,
              GradientValues& whole);

}  // namespace tilewright::verify
