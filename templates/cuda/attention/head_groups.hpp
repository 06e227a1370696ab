#pragma once

#include "cuda/language.hpp"

// Blocks of threads start in the order of their numbers. They take heads in groups, whose tensors fit into the L2 cache;
// within a group the first items of all its heads come first. The last group is a large one, as its longest items must
// not be what the rest waits for.

namespace tw_kernel {

struct PlaceInGroups {
  int head;  // of all heads
  int item;  // of a head's
};

TW_INLINE PlaceInGroups place_in_groups(unsigned number, int items_of_head, int heads_in_group, int whole_groups,
                                        int all_heads) {
  const auto items_of_group = static_cast<unsigned>(items_of_head * heads_in_group);
  const int group = min(static_cast<int>(number / items_of_group), whole_groups);
  const int in_group = static_cast<int>(number - group * items_of_group);
  const int first_head = group * heads_in_group;
  const int heads = group < whole_groups ? heads_in_group : all_heads - first_head;
  return {first_head + in_group % heads, in_group / heads};
}

}  // namespace tw_kernel
