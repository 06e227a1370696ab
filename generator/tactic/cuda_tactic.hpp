#pragma once

#include <cstdint>

#include "tactic.hpp"

namespace tilewright {

/// The tactic of one kernel: "hopper" (hopper_tactic.hpp) where that can serve and nothing else is
/// forced, otherwise "portable".
/// @throws Error with code spec where the forced tactic does not exist or does not fit
Tactic choose_cuda_tactic(const SpecFacts& facts, const Target& target,
                          const KernelVariant& kernel);

/// Whether a forward kernel has a twin for q tiles whose columns blocks of threads share: Hopper's
/// kernel, where q tiles do not cover rows of two blocks of the mask.
/// @param kernel either of them
bool has_split_kernel(const SpecFacts& facts, const Target& target, KernelVariant kernel);

/// Whether the spec's products run on tensor cores (16-bit tensors of one type; k and v also
/// of one byte, whose numbers become 16-bit ones exactly), else in float32.
bool uses_tensor_cores(const Spec& spec);

/// Whether q, k and v are of f8e4m3, which Hopper's kernel multiplies as they are.
bool multiplies_float8(const Spec& spec);

/// Whether float32 products are computed in TF32, on tensor cores too.
bool uses_tf32(const Spec& spec);

/// Tiles of 16 rows that a warp of the tactic "portable" owns on tensor cores; 1 elsewhere.
std::int64_t row_tiles(const Spec& spec, const PortableTactic& tactic);

/// Dynamic shared memory of a launch of the tactic, in bytes.
std::int64_t shared_bytes(const Spec& spec, const PortableTactic& tactic);
std::int64_t shared_bytes(const Spec& spec, const HopperTactic& tactic);

/// Shared memory that a block of threads may have on a target, in bytes.
std::int64_t max_shared_bytes(const Target& target);

/// What a launch's tiles may take of it, in bytes: CUDA keeps the rest for itself.
std::int64_t shared_room(const Target& target);

}  // namespace tilewright
