#pragma once

#include <string_view>
#include <vector>

#include "snippet.hpp"
#include "spec.hpp"

namespace tilewright {

/// Whether the name of an index, a length, a buffer or `clamp` may mean something else somewhere in
/// the snippet, or not be seen there: a variable of that name is declared, or a lambda lists what
/// it captures. Errs on the side of true.
bool may_declare_a_name(const std::vector<SnippetToken>& tokens, const Spec& spec);

/// Whether the snippet may declare a variable or a parameter of this name. Errs on the side of
/// true.
bool may_declare(const std::vector<SnippetToken>& tokens, std::string_view name);

}  // namespace tilewright
