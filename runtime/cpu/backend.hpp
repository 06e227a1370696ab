#pragma once

#include <memory>

#include "../call/backend.hpp"

namespace tilewright::cpu {

/// Compiles or loads the kernels of a checked spec for this machine's CPU.
/// @throws Error as load_kernels
std::unique_ptr<Backend> make_backend(const Spec& spec, const AttentionOptions& options);

}  // namespace tilewright::cpu
