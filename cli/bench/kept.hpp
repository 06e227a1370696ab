#pragma once

#include "runtime/api/attention.hpp"
#include "verify/random_sequences.hpp"

namespace tilewright::cli {

/// Share of the q_len x kv_len elements that a spec's mask_mod keeps, over all heads and batches; 1
/// without one. A block mask knows tiles only, so this asks a kernel: where every score is 0, lse
/// is the logarithm of how many elements a row keeps.
/// @param inputs where the device reads them
/// @throws Error as Attention
double kept_share(const Spec& spec, const Shape& shape, const SnippetInputs& inputs,
                  const Device& device, ThreadPool* threads);

/// The same of a packed call, over the q_len x kv_len elements of its sequences.
/// @param problem on the host
double packed_kept_share(const Spec& spec, const verify::Problem& problem,
                         const verify::PackedLengths& lengths, const SnippetInputs& inputs,
                         const Device& device, ThreadPool* threads);

}  // namespace tilewright::cli
