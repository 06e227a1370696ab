#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tactic.hpp"

namespace tilewright {

/// The tactic "hopper" of one kernel.
///
/// Nothing where it cannot serve a kernel: for other targets, float32, tensors that the copy engine
/// cannot bring, and blocks of a mask that its tiles neither divide nor merge.
std::optional<HopperTactic> default_hopper_tactic(const SpecFacts& facts, const Target& target,
                                                  const KernelVariant& kernel);

/// Why "hopper" cannot serve a kernel, as the end of a sentence; empty where it can.
std::string why_not_hopper(const SpecFacts& facts, const Target& target,
                           const KernelVariant& kernel);

/// Lets parameters that are not forced follow those that are: kv_tile an own q_tile, q_tile an own
/// kv_tile, and q_stages what shared memory has room for.
/// @param room  bytes of shared memory that a block of threads has
void follow_forced(const SpecFacts& facts, const KernelVariant& kernel, const TacticSpec& forced,
                   std::int64_t room, HopperTactic& tactic);

/// @throws Error with code spec where the tactic's parameters do not fit
void check(const Spec& spec, const KernelVariant& kernel, const HopperTactic& tactic);

/// Whether a masked kernel's q tile covers rows of two blocks of the mask, whose lists it merges. A
/// warpgroup's 64 rows are of one.
bool spans_two_blocks(const Spec& spec, const HopperTactic& tactic);

/// What becomes of the tiles that the copy engine brings before products take them, as
/// templates/kernel/prepared_tiles.hpp.jinja names it.
std::string_view prepared_tiles(const Spec& spec);

/// Warpgroups of a block that do nothing else but prepare tiles. Where there is none, warps of the
/// producer's warpgroup do.
std::int64_t preparing_groups(const Spec& spec, const HopperTactic& tactic);

/// Whether the same warps prepare tiles of K and of V.
bool prepares_in_turns(const Spec& spec, const HopperTactic& tactic);

/// Warps that prepare a tile of K or of V.
std::int64_t preparers(const Spec& spec, const HopperTactic& tactic);

/// Places for tiles that are to be prepared, each of K and of V.
std::int64_t brought_stages(const Spec& spec, const HopperTactic& tactic);

/// Bytes of shared memory that a value by the difference of indices (SpecFacts::difference) adds to
/// shared_bytes: 0 where warps keep it where they later stage their rows of out. None where
/// score_mod has none, or shared memory or registers have no room for it.
std::optional<std::int64_t> difference_bytes(const SpecFacts& facts, const Target& target,
                                             const KernelVariant& kernel,
                                             const HopperTactic& tactic);

/// Bytes of a warp's values, whose tile has so many columns: as in
/// templates/cuda/hopper/difference_values.hpp.
std::int64_t warp_difference_bytes(std::int64_t columns);

/// Panels of 128 bytes a row that a box of k or v in pages has, for heads of `width` columns of
/// `dtype`: all where these are whole panels. Of other k and v it is 1.
std::int64_t page_box_panels(std::int64_t width, DType dtype);

}  // namespace tilewright
