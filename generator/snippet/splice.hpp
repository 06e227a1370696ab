#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "../render/engine/value.hpp"
#include "snippet.hpp"

namespace tilewright {

// gcc takes the members for redeclarations of the constants in dtype.hpp.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
/// The type that an unsuffixed floating literal (`0.5`) has in an interpretation: the score's.
enum class LiteralType : std::uint8_t {
  f32,  ///< 0.5 is spliced as 0.5f
  f64,  ///< 0.5 stays as it is
};
#pragma GCC diagnostic pop

/// What stands in a kernel in the place of bytes [begin, end) of a snippet.
struct Replacement {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
};

/// The snippet as the statements of a function that returns its value: an expression becomes
/// `return ( ... );`, a body is copied. The snippet stands on its own lines, so that what
/// follows is neither swallowed by a comment nor joined to a token, and every position maps back to
/// it.
/// @param replacements  in the order of the text
jinja::Splice splice_snippet(const Snippet& snippet, LiteralType literal_type,
                             const std::vector<Replacement>& replacements = {});

}  // namespace tilewright
