#pragma once

#include <string_view>

#include "brackets.hpp"

namespace tilewright {

/// Whether a snippet may declare a variable or a parameter of this name. Errs on the side of true.
bool may_declare(const SnippetBrackets& snippet, std::string_view name);

}  // namespace tilewright
