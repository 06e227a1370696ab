#pragma once

#include <string_view>
#include <vector>

#include "snippet.hpp"

namespace tilewright {

/// Whether the snippet may declare a variable or a parameter of this name. Errs on the side of
/// true.
bool may_declare(const std::vector<SnippetToken>& tokens, std::string_view name);

}  // namespace tilewright
