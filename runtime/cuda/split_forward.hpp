#pragma once

#include <cstddef>
#include <cstdint>

#include "../../templates/abi/splits.hpp"
#include "../call/split_parts.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// The kernel that splits q tiles, where the Attention has one for this GPU.
SplitLaunch split_launch(const LaunchScope& on);

/// How a dense call is split with a workspace: counters at its begin, which are 0 before and after
/// a call, then the parts.
struct DenseSplit {
  std::int64_t parts = 1;
  std::int64_t bytes = 0;  ///< of the workspace; 0 where parts is 1

  abi::SplitWork work(std::byte* workspace) const;
};
/// @param splits ForwardOptions::splits
DenseSplit dense_split(const LaunchScope& on, const Shape& shape, std::int64_t splits = 0);

}  // namespace tilewright::cuda
