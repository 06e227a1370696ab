#pragma once

#include <cstdint>
#include <optional>

#include "tactic.hpp"

namespace tilewright {

/// The tactic "hopper" of templates/cuda/kernels/hopper_forward.cu.jinja, for sm_90a:
///
/// - q_tile: rows of q that a block of threads works on, 64 for each warpgroup that computes; it
///   divides block[0] of a mask, or covers rows of two of its blocks (merges_rows)
/// - kv_tile: rows of k and v at a time
/// - stages: tiles of K, and of V, in shared memory
/// - q_stages: tiles of Q there; with 2 the next one comes while the current one is used
/// - take_turns: 1: warpgroups issue their products one after the other
/// - persistent: 0: a block of threads for each q tile; 1: one for each multiprocessor
/// - out_over_q: 1: the output is staged where Q was
/// - mask_unroll: columns of a tile that mask_mod is compiled for at once
/// - bounded_waits: 1: a wait without end is reported and ends the kernel; for debugging
/// - launch_counters: calls that may run at once and deal out their q tiles as multiprocessors
///   become free; those beyond deal them out beforehand
///
/// Nothing where it cannot serve a kernel: for other targets, float32, tensors that the copy engine
/// cannot bring, and blocks of a mask that its tiles neither divide nor merge.
std::optional<Tactic> default_hopper_tactic(const Spec& spec, const Target& target,
                                            const KernelTraits& kernel);

/// Lets parameters that are not forced follow those that are: kv_tile an own q_tile, q_tile an own
/// kv_tile, and q_stages what shared memory has room for.
/// @param room  bytes of shared memory that a block of threads has
void follow_forced(const Spec& spec, const KernelTraits& kernel, const TacticSpec& forced,
                   std::int64_t room, Tactic& tactic);

/// @throws Error with code spec where the tactic's parameters do not fit
void check_hopper_tactic(const Spec& spec, const KernelTraits& kernel, const Tactic& tactic);

/// Whether a masked kernel's q tile covers rows of two blocks of the mask, whose lists it merges. A
/// warpgroup's 64 rows are of one.
bool merges_rows(const Spec& spec, const Tactic& tactic);

/// Dynamic shared memory of a launch of the tactic, in bytes.
std::int64_t hopper_shared_bytes(const Spec& spec, const Tactic& tactic);

}  // namespace tilewright
