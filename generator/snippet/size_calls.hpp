#pragma once

#include "../spec/spec.hpp"
#include "snippet.hpp"

namespace tilewright {

/// Refuses `x.size(i)` of a buffer x of the spec where i is a constant that the text spells out and
/// x lacks that dimension. Kernels clamp any other i. Also refuses an index or a size() of a buffer
/// without dimensions, which is read as `x`.
/// @throws Error with code snippet, with the place of i
void check_size_calls(const Spec& spec, SnippetKind kind, std::string_view text);

}  // namespace tilewright
