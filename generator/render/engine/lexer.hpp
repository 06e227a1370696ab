#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "complaint.hpp"

namespace tilewright::jinja {

enum class TokenKind : std::uint8_t {
  text,            ///< copied to the output; trim_blocks and lstrip_blocks have been applied
  variable_begin,  ///< {{
  variable_end,    ///< }}
  block_begin,     ///< {%
  block_end,       ///< %}
  name,
  string,  ///< with its quotes
  integer,
  symbol,  ///< an operator or a bracket
  end,     ///< of the template
  error,   ///< what cannot be a token; Tokens::error says why
};

struct Token {
  TokenKind kind;
  std::uint32_t offset;   ///< in the template's text
  std::string_view text;  ///< points into it
};

/// The tokens of a template. An error is a token too, so that the parser reports whatever is wrong
/// first in the file.
struct Tokens {
  std::vector<Token> list;  ///< the last one is `end` or `error`
  Complaint error;
};

/// Splits a template. White space is Jinja's with trim_blocks, lstrip_blocks and
/// keep_trailing_newline: a tag alone on its line leaves no trace.
Tokens tokenize(std::string_view text);

}  // namespace tilewright::jinja
