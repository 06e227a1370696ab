#pragma once

#include "../spec/spec.hpp"
#include "snippet.hpp"

namespace tilewright {

/// check_snippet of one of a spec's snippets, then what needs the spec: names that other libraries
/// use (`q`, `torch.where`, `True`) and the spec does not declare, `^` between floats, reads of a
/// buffer with another number of indices than it has dimensions. Without such a snippet: nothing.
/// @throws Error with code snippet, with line and column in the snippet and a hint
void check_snippet_of(const Spec& spec, SnippetKind kind);

}  // namespace tilewright
