#pragma once

// The interpretation of the double-precision reference.

namespace tw_snippet {

using tw_real = double;

}  // namespace tw_snippet
