#pragma once

#include <cstddef>

#include "../../generator/spec/spec.hpp"

namespace tilewright {

/// What all parameters of a launch on a GPU may take together.
inline constexpr std::size_t kMaxParameterBytes = 4096;

/// Dimensions that each buffer of a spec has room for in the parameters of a GPU's kernels.
int argument_rank(const Spec& spec);

/// @throws Error with code spec where no launch on a GPU takes the parameters of the spec's
/// kernels, with the number of buffers that fit
void require_parameter_room(const Spec& spec);

}  // namespace tilewright
