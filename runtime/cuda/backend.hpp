#pragma once

#include <memory>

#include "../call/backend.hpp"

namespace tilewright::cuda {

/// Compiles or loads the kernels of a checked spec for one GPU. Compiling starts before the GPU's
/// context is made, and runs in parallel with it.
/// @throws Error as build_kernels; with code device where driver, GPU and NVRTC do not fit
std::unique_ptr<Backend> make_backend(const Spec& spec, const AttentionOptions& options);

}  // namespace tilewright::cuda
