#pragma once

#include <cstdint>

#include "../../generator/spec/spec.hpp"
#include "../api/shape.hpp"

namespace tilewright::cuda {

/// The order in which a launch works through its heads: `count` groups of `heads` heads each, then
/// one last group of all the others. See templates/cuda/attention/place.hpp.
struct HeadGroups {
  std::int64_t heads;
  std::int64_t count;
};

/// Groups of as many heads as keep their K and V in half of the L2 cache, and whole groups of query
/// heads that share a kv head. The last group is at least twice as large where there are so many:
/// a small one would begin its longest tiles when everything else is nearly done, and the GPU would
/// wait for them.
HeadGroups head_groups(const Spec& spec, const Shape& shape, std::int64_t l2_bytes);

}  // namespace tilewright::cuda
