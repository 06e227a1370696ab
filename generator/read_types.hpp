#pragma once

#include "spec.hpp"

namespace tilewright {

/// Whether reading a buffer must give a plain number in CUDA's kernels. Elsewhere it gives a class
/// that becomes a truth where it is compared, whose && and || evaluate both sides
/// (templates/cuda/snippet/buffer.hpp). That class would be another type where one is deduced or two
/// are made one (`c ? x[i] : 0` would be an int), and both sides must not be evaluated where one
/// changes a variable.
bool reads_are_numbers(const Spec& spec);

}  // namespace tilewright
