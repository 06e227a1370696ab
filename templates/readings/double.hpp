#pragma once

// The reading of the double-precision reference.

namespace tw_snippet {

using tw_real = double;

}  // namespace tw_snippet
