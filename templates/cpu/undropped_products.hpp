#pragma once

#include "cpu/differentiate.hpp"
#include "cpu/inline.hpp"
#include "cpu/vector.hpp"
#include "snippet/snippets.hpp"

// Without dropout nothing is added to a backward kernel. See dropped_products.hpp.

namespace tw_kernel {

struct Draws {};

template <bool kLanesAreRows>
TW_INLINE void draw_chunk(const tw_snippet::tw_State&, const BackwardPlace&, int, Draws&) {}
TW_INLINE Vector dropped(const Draws&, int, Vector x) { return x; }

}  // namespace tw_kernel
