#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "splice.hpp"

namespace tilewright {

/// One set of types that snippets are compiled with (docs/spec.md, Snippets). A
/// new interpretation is a header under templates/interpretations/ and an entry in
/// interpretation.cpp.
struct Interpretation {
  /// What a word of C++ means inside a snippet: a macro around the splice.
  struct Word {
    std::string_view word;
    std::string_view type;
  };

  std::string_view name;           ///< "float", "double", "checked", "interval"
  std::string_view header;         ///< template that defines the types
  std::string_view buffer_header;  ///< template that defines tw_Buffer
  bool fast_math = false;          ///< our own vectorised functions; else the C library's
  bool checked = false;            ///< finds undefined behaviour
  LiteralType literals = LiteralType::f32;
  std::vector<Word> words;
  std::vector<std::string_view> options;  ///< that its sources need from the compiler
};

/// All interpretations.
std::span<const Interpretation> interpretations();

/// @throws Error(internal) for a name that is none
const Interpretation& interpretation(std::string_view name);

}  // namespace tilewright
