#pragma once

#include <string_view>

#include "cli/bench/timing.hpp"

namespace tilewright::cli {

/// Times building the plan of a packed call again: on a GPU the mean of rebuilds one after another,
/// in a replayed CUDA graph where the driver has graphs.
Samples time_rebuild(const PreparedCall& call, const Timing& timing);

/// How: "CUDA events, replayed graph".
std::string_view describe_rebuild_timing(const Device& device);

}  // namespace tilewright::cli
