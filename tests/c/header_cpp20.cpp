// The public header alone, as C++20; tests/c/clients/header.c is its C99.
#include <type_traits>

#include "c/tilewright.h"

static_assert(TW_ABI_VERSION == 3);
// Sizes of ABI version 2 and later: a struct only grows at its end.
static_assert(sizeof(tw_tensor) == 104 && sizeof(tw_shape) == 64 && sizeof(tw_packed_shape) == 72);
static_assert(sizeof(tw_options) == 96 && sizeof(tw_call) == 1024 && sizeof(tw_sequences) == 736);
static_assert(std::is_trivial_v<tw_call> && std::is_standard_layout_v<tw_call>);
