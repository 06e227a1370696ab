#pragma once

#include <string>
#include <vector>

#include "tests/compile_matrix/kernels.hpp"

namespace tilewright::compile_matrix {

/// One of each generation, and of each amount of shared memory.
const std::vector<Target>& targets();

/// Specs of a folder's *.json, by name of the file.
/// @throws Error as spec_from_file
std::vector<Spec> specs_of(const std::string& folder);

/// Those of the specs that packed calls can have, as packed specs.
std::vector<Spec> as_packed(const std::vector<Spec>& specs);

/// Every kernel of the specs for every target.
std::vector<Wish> all_wishes(const std::vector<Spec>& specs);

/// Of every spec, for every target, the kernel that `run` would launch.
std::vector<Wish> main_wishes(const std::vector<Spec>& specs);

/// The specs in 16 bits with head_dim 64 and 128, where nothing may spill; of each the kernel that
/// `run` would launch.
std::vector<Wish> tight_wishes(const std::vector<Spec>& specs);

/// One kernel of two specs of three, so that all kernels and all targets have their turns.
std::vector<Wish> sample_wishes(const std::vector<Spec>& specs);

/// Backward kernels that sum the gradient of a buffer, of each pattern of its index, with head_dim
/// 64 and 128, for each template's targets, and those of head dims above 128 on Hopper.
std::vector<Wish> gradient_wishes();

/// Kernels for Hopper, forward and backward, whose score_mod has a value by the difference of
/// indices, with head_dim 64 and 128.
std::vector<Wish> difference_wishes();

/// Kernels with dropout for Hopper, forward and backward, of head dims 64 to 256.
std::vector<Wish> dropout_wishes();

/// Forward kernels for Hopper over k and v of one byte, with q of 16 bits and of 8, of head dims 64
/// to 256.
std::vector<Wish> one_byte_wishes();

}  // namespace tilewright::compile_matrix
