#pragma once

#include <string>
#include <string_view>

#include "../snippet/snippet.hpp"

namespace tilewright {

/// A compiler's message in the words of a user who wrote a snippet and not the kernel.
struct Wording {
  std::string message;
  std::string hint;  ///< empty where nothing useful can be said
};

/// Takes out of a message of g++, clang++ or NVRTC what only makes sense inside the kernel, and
/// finds the name that was probably meant.
Wording reword(std::string_view text, const Spec& spec, SnippetKind kind);

/// The compiler lacks one of its own headers, so neither template nor snippet is to blame.
bool is_missing_header(std::string_view text);

}  // namespace tilewright
