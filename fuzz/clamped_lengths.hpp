#pragma once

#include <vector>

#include "../runtime/api/plan.hpp"
#include "../verify/sequences.hpp"
#include "packing.hpp"

namespace tilewright::verify::fuzz {

/// What a plan must make of numbers that may lie (docs/packed.md), apart from the runtime's own
/// clamping.
struct ClampedLengths {
  std::vector<SequenceRows> rows;
  PlanReport report;  ///< count and first

  /// @param shape with its bounds, or 0 for none
  ClampedLengths(const SequenceNumbers& numbers, const PackedShape& shape);
};

}  // namespace tilewright::verify::fuzz
