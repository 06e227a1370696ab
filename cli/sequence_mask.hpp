#pragma once

#include "cli/inputs.hpp"
#include "runtime/api/attention.hpp"

namespace tilewright::cli {

/// The tile map that a plan makes of a packed call's one sequence, as a block mask of its sizes: to
/// count, draw and write.
/// @param inputs of CallInputs::load_for_mask
/// @throws Error as StagedPlan
BlockMask mask_of_sequence(const Attention& attention, const CallInputs& inputs,
                           const Bindings& bindings);

}  // namespace tilewright::cli
