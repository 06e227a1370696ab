#pragma once

#include <cstdint>

#include "jinja/value.hpp"
#include "snippet.hpp"

namespace tilewright {

// gcc takes the members for redeclarations of the constants in dtype.hpp.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
/// The type that an unsuffixed floating literal (`0.5`) has in a reading: the score's.
enum class LiteralType : std::uint8_t {
  f32,  ///< 0.5 is spliced as 0.5f
  f64,  ///< 0.5 stays as it is
};
#pragma GCC diagnostic pop

/// The snippet as the statements of a function that returns its value: an expression becomes
/// `return ( ... );`, a body is copied. The snippet stands on lines of its own, so that what
/// follows is neither swallowed by a comment nor joined to a token, and every position maps back to
/// it.
jinja::Splice splice_snippet(const Snippet& snippet, LiteralType literal_type);

}  // namespace tilewright
