#pragma once

#include <string_view>

#include "snippet.hpp"

namespace tilewright {

/// Whether what stands behind an `&&` or `||` of a snippet may change a variable: computing both
/// sides of it, as the interval reading does, gives another result then. Errs on the side of true;
/// a variable of a lambda's own does not count.
/// @throws Error as tokenize does
bool has_conditional_effects(SnippetKind kind, std::string_view text);

}  // namespace tilewright
