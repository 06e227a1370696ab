#pragma once

#include "../../generator/spec/spec.hpp"
#include "../api/bindings.hpp"
#include "../api/block_mask.hpp"
#include "../api/sequences.hpp"

namespace tilewright {

/// Refuses specs whose plans cannot take lists of positions: dense ones, those without mask_mod,
/// and those whose mask_mod tells sequences apart.
/// @throws Error with code usage
void require_takes_positions(const Spec& spec);

/// Refuses lists that are no lists of positions for a plan's calls.
/// @param source the spec's
/// @throws Error with code block_mask, naming what differs and both values
void require_positions_fit(const BlockMask& positions, const MaskSource& source,
                           const PackedShape& shape, const Bindings& bindings);

}  // namespace tilewright
