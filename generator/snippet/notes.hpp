#pragma once

#include <string>
#include <vector>

#include "../../base/error.hpp"
#include "../spec/spec.hpp"

namespace tilewright {

/// Something in a snippet that is right C++ and may mean something else than its author thinks.
struct SnippetNote {
  SourceLocation place;
  std::string message;
  std::string hint;  ///< what to write if the other thing is meant
};

/// "score_mod:1:7: ^ is exclusive or; for a power write pow(h, 2)"
std::string to_string(const SnippetNote& note);

/// Notes on the snippets of a spec that validate() accepts, in the order of their places: `^`
/// between whole numbers, `a & b == c`, `!a == b`, `a && b || c`, `1 / 2`, `-a % n`, octal numbers,
/// statements that change nothing, a score_mod that does not read the score, a dropout that is a
/// number outside 0 to 1 or NaN.
std::vector<SnippetNote> snippet_notes(const Spec& spec);

}  // namespace tilewright
