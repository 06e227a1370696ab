#pragma once

#include <cstdint>

#include "jinja/value.hpp"
#include "snippet.hpp"

namespace tilewright {

/// The type that an unsuffixed floating literal (`0.5`) has in a reading: the score's.
enum class LiteralType : std::uint8_t {
  f32,  ///< 0.5 is spliced as 0.5f
  f64,  ///< 0.5 stays as it is
};

/// The snippet as the statements of a function that returns its value: an expression becomes
/// `return ( ... );`, a body is copied. The snippet stands on lines of its own, so that what
/// follows is neither swallowed by a comment nor joined to a token, and every position maps back to
/// it.
jinja::Splice splice_snippet(const Snippet& snippet, LiteralType literal_type);

}  // namespace tilewright
