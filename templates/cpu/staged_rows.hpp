#pragma once

// Rows of K or V as the matrix products read them.

namespace tw_kernel {

struct StagedRows {
  const float* rows;
  long long stride;  // floats from one row to the next
};

}  // namespace tw_kernel
