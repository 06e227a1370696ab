#pragma once

#include <cstdint>

#include "cli/bench/measure.hpp"

namespace tilewright::cli {

/// The same with packed q, k and v; with k and v in pages.
Spec as_packed(Spec spec);
Spec as_paged(Spec spec);

/// A packed call whose sequences lie next to each other, without rows of no sequence; of paged k
/// and v, in pages in random order.
/// @throws Error with code usage where q or out has no rows; with code tensor for sizes that no
///         kernel can run
Workload packed_workload(const Spec& spec, const verify::PackedLengths& lengths);

/// The tensors of such a call, with random contents.
verify::PackedInputs adjacent_sequences(const Spec& spec, const verify::PackedLengths& lengths,
                                        std::uint64_t seed);

/// Elements q_len x kv_len of all sequences, of one head.
double pairs_of(const verify::PackedLengths& lengths);

}  // namespace tilewright::cli
