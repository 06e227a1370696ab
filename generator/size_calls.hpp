#pragma once

#include "snippet.hpp"
#include "spec.hpp"

namespace tilewright {

/// Refuses `x.size(i)` of a buffer x of the spec where i is a number that stands in the text and is no
/// dimension of x. Kernels clamp any other i. Also refuses an index or a size() of a buffer without
/// dimensions, which is read as `x`.
/// @throws Error with code snippet, with the place of i
void check_size_calls(const Spec& spec, SnippetKind kind, std::string_view text);

}  // namespace tilewright
