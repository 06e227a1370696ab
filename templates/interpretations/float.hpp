#pragma once

// The interpretation of forward and of evaluate_float: the score is a float, an index an int.

namespace tw_snippet {

using tw_real = float;

}  // namespace tw_snippet
