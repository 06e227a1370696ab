#pragma once

#include "../../templates/abi/merge.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// Launches merge.
/// @param call from resolve_merge, with rows
void launch_merge(const LaunchScope& on, abi::MergeArguments call, tilewright::Stream stream);

}  // namespace tilewright::cuda
