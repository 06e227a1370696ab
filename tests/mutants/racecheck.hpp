#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::mutants {

/// What compute-sanitizer's racecheck is told so that lanes_that_race can read its report.
std::vector<std::string> options_for_lanes();

/// The first hazard between two lanes of one warp that racecheck reports, as a sentence; empty
/// where there is none.
///
/// Hazards between warps are passed by: where a warp's first lane arrives at a barrier of the copy
/// engine's for all of them, after __syncwarp, racecheck takes what the other lanes read before for
/// a race with what comes after the barrier (docs/lab/performance.md). Blocks of threads have one
/// dimension.
std::string lanes_that_race(std::string_view report);

}  // namespace tilewright::mutants
