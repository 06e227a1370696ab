#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/attention/no_dropout.hpp"
#include "cuda/language.hpp"

namespace tw_kernel {

// Without dropout nothing is drawn. See draws.hpp.
TW_INLINE Draws draw_tile(const SnippetInputs&, int) { return {}; }

}  // namespace tw_kernel
