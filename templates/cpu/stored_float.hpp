#pragma once

#include "cpu/inline.hpp"

// A float of K or V whose rows are no rows of a tile (padded_rows.hpp): they are never read in place.

namespace tw_kernel {

struct StoredFloat {
  float value;
};

TW_INLINE float to_float(StoredFloat x) { return x.value; }
TW_INLINE void from_float(float x, StoredFloat* out) { out->value = x; }

}  // namespace tw_kernel
