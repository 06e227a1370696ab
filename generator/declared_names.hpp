#pragma once

#include <vector>

#include "snippet.hpp"
#include "spec.hpp"

namespace tilewright {

/// Whether the name of an index, a length, a buffer or `clamp` may mean something else somewhere in
/// the snippet, or not be seen there: a variable of that name is declared, or a lambda lists what
/// it captures. Errs on the side of true.
bool may_declare_a_name(const std::vector<SnippetToken>& tokens, const Spec& spec);

}  // namespace tilewright
