#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec.hpp"

namespace tilewright {

/// One token of a snippet. Comments and white space are not tokens.
struct SnippetToken {
  enum class Kind { identifier, number, character, string, punctuation };
  Kind kind;
  std::string_view text;  ///< points into the snippet
  int line = 1;           ///< from 1
  int column = 1;         ///< from 1, in bytes
};

enum class SnippetKind { score_mod, mask_mod };
/// "score_mod" or "mask_mod".
std::string_view to_string(SnippetKind kind);

/// A snippet that has passed the checks: nothing in it can swallow or break out of what stands after
/// it, so a compiler's message about it lies inside it.
struct Snippet {
  SnippetKind kind = SnippetKind::score_mod;
  std::string text;
  bool is_expression = false;      ///< no `;` at its top level: a value, not a body with `return`
  std::vector<std::string> names;  ///< identifiers that it mentions, sorted, each once

  bool mentions(std::string_view name) const;
};

/// Limits that keep a hostile or broken snippet from hurting the compiler.
inline constexpr std::size_t kMaxSnippetBytes = 64 * 1024;
inline constexpr int kMaxSnippetNesting = 64;

/// Splits C++ text into tokens: raw strings, digraphs, digit separators and line splices included.
/// @throws Error with code snippet: an unterminated string, character or comment, a raw string, a
///         character outside printable ASCII (strings and comments may hold UTF-8)
std::vector<SnippetToken> tokenize(std::string_view text, SnippetKind kind);

/// Refuses what must not reach a compiler: unbalanced brackets, any preprocessor directive (by `#`,
/// `%:`, `??=`, behind a line splice or a comment), a line splice, `asm`, `__attribute__` and
/// `[[...]]`, names that are reserved for the library (`tw_*`, `__*`), too deep nesting, too long a
/// text, an empty text, a body without `return`.
/// @throws Error with code snippet, with line and column in the snippet and a hint
Snippet check_snippet(SnippetKind kind, std::string_view text);

/// The names that a snippet of this spec may use, for messages: indices, lengths, buffers (with
/// their shapes), scalars, functions.
std::string names_available(const Spec& spec, SnippetKind kind);

/// C++ functions that every reading offers: "tanh", "exp", ...
const std::vector<std::string>& snippet_functions();

/// b, h, h_kv, q_idx, kv_idx, q_len, kv_len, num_q_heads, num_kv_heads (and score for score_mod).
const std::vector<std::string>& snippet_variables();

}  // namespace tilewright
