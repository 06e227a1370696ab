#pragma once

#include <cstdint>

#include "../../generator/spec/spec.hpp"
#include "../api/shape.hpp"

namespace tilewright::cuda {

/// The order in which a launch works through its heads: `count` groups of `heads` heads each, then
/// one last group of all the others. See templates/cuda/attention/q_tile.hpp.
struct HeadGroups {
  std::int64_t heads;
  std::int64_t count;
};

/// Groups of as many heads as keep their K and V in half of the L2 cache, and whole groups of query
/// heads that share a kv head. The last group is at least twice as large where there are so many:
/// a small one would begin its longest tiles when everything else is nearly done, and the GPU would
/// wait for them.
HeadGroups head_groups(const Spec& spec, const Shape& shape, std::int64_t l2_bytes);

/// The order in which a packed call's launch works: groups of sequences, and in each of them groups
/// of heads. See templates/cuda/attention/planned_q_tiles.hpp.
struct PackedGroups {
  std::int64_t sequences;  ///< groups of them, at most abi::kMostPlanGroups
  std::int64_t kv_rows;    ///< that each has about
  std::int64_t heads;      ///< query heads of a group: those that share a kv head are in one
};

/// Groups whose K and V are half of the L2 cache at most, wherever one kv head of at most an eighth
/// of the rows is no more.
/// @param shape its kv_len is total_kv
PackedGroups packed_groups(const Spec& spec, const Shape& shape, std::int64_t l2_bytes);

}  // namespace tilewright::cuda
