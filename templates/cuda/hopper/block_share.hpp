#pragma once

namespace tw_kernel {

// Of the blocks of a row of the mask, those that an item visits, in the order of visits.
struct BlockShare {
  int first_partial, partial;  // how many come before, and how many the item visits
  int first_full, full;
};

}  // namespace tw_kernel
