#pragma once

#include <cstddef>

#include "../generator/spec/dtype.hpp"

namespace tilewright::verify {

/// A neighbour of the value with the significant bits of `dtype` (round_digits), the nearer one
/// more often. The same in every run and thread.
/// @param draw another one rounds otherwise
double round_stochastically(DType dtype, double value, std::size_t draw);

}  // namespace tilewright::verify
