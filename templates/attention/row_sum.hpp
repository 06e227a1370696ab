#pragma once

// A row of scores after its last kv tile.

namespace tw_kernel {

struct RowSum {
  float greatest;  // score, as lse counts it
  float sum;       // of exp(score - greatest); 0 where nothing is kept
  float factor;    // out = O * factor
  bool empty;      // out is 0, whatever O and the factor are
};

}  // namespace tw_kernel
