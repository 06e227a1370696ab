#pragma once

#include <string>
#include <string_view>

namespace tilewright::cli {

/// Whether stderr is a terminal that shows colours, and the user wants them: NO_COLOR is unset or
/// empty (no-color.org), and TERM is not "dumb".
bool stderr_has_colours();

/// An error's report with terminal colours: the code and the caret red, the place blue, hints and
/// notes marked. Without the escape sequences it is the same text.
std::string in_colours(std::string_view report);

}  // namespace tilewright::cli
