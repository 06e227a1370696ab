#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tilewright {

/// What escaped() does with a line break and a tab.
enum class Lines {
  keep,    ///< a text of several lines
  escape,  ///< a text that must stay on one line
};

/// A text from outside (a tensor's name, a file's, a compiler's log) as a terminal may be given it.
/// Well-formed UTF-8 stays readable. Control characters, invalid UTF-8, characters that turn the
/// direction of writing and invisible ones become `\x1b` or `\u202e` (from U+007F on: JSON's
/// escapes). Where the result would exceed `most` bytes, its middle is left out: "... [1234 bytes]
/// ...".
std::string escaped(std::string_view text, Lines lines, std::size_t most = std::string_view::npos);

}  // namespace tilewright
