#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../../base/error.hpp"
#include "../spec/spec.hpp"

namespace tilewright {

/// One token of a snippet. Comments and white space are not tokens.
struct SnippetToken {
  enum class Kind { identifier, number, character, string, punctuation };
  Kind kind;
  std::string_view text;   ///< points into the snippet
  std::size_t offset = 0;  ///< of its first byte in the snippet
  int line = 1;            ///< from 1
  int column = 1;          ///< from 1, in bytes
};

enum class SnippetKind { score_mod, mask_mod, q_scale, k_scale, v_scale, out_scale, sink, dropout };
/// The key of the spec: "score_mod", "mask_mod", "q_scale", ...
std::string_view to_string(SnippetKind kind);
/// All of them, in the order of the enumeration.
const std::vector<SnippetKind>& snippet_kinds();

/// A spec's text of a kind; empty where it has none.
const std::string& snippet_text(const Spec& spec, SnippetKind kind);
std::string& snippet_text(Spec& spec, SnippetKind kind);

/// Whether snippets of this kind see one of snippet_variables(), where the layout has it: score_mod
/// all, mask_mod all but the score; a scale and the sink what their tensor's rows have, dropout the
/// head.
bool sees(SnippetKind kind, std::string_view variable);

/// A snippet that has passed the checks: nothing in it can swallow or break out of what stands
/// after it, so a compiler's message about it lies inside it.
struct Snippet {
  SnippetKind kind = SnippetKind::score_mod;
  std::string text;
  bool is_expression = false;      ///< a value, not a body with `return`
  std::vector<std::string> names;  ///< identifiers that it mentions, sorted, each once; no keywords
                                   ///< and no members (`x.size` mentions x)
  /// Offsets past each number like `0.5`, which has the score's type: no suffix, no whole number.
  std::vector<std::size_t> score_literals = {};

  bool mentions(std::string_view name) const;
};

/// Limits that keep a hostile or broken snippet from hurting the compiler.
inline constexpr std::size_t kMaxSnippetBytes = std::size_t{64} * 1024;
inline constexpr int kMaxSnippetNesting = 64;
/// Tokens between two semicolons or braces, or elements of a list: compilers recurse over the
/// operators of an expression, and clang 14 dies of 4000.
inline constexpr int kMaxStatementTokens = 1024;

/// Splits C++ text into tokens. Digraphs and digit separators are understood.
/// @throws Error with code snippet: too long a text, an unterminated string, character or comment,
/// a
///         raw string, a malformed number, a line splice, a control character, a character outside
///         ASCII (strings and comments may hold UTF-8)
std::vector<SnippetToken> tokenize(std::string_view text, SnippetKind kind);

/// How often this thread has called tokenize; for tests.
std::uint64_t tokenizations();

/// Refuses what must not reach a compiler: unbalanced brackets, any preprocessor directive (by `#`,
/// `%:`, `??=`, after a line splice or a comment), a line splice, digraphs, `asm` and other
/// keywords that have no place in a snippet, `[[...]]`, qualified names (`::`), names that are
/// reserved for the library or the compiler (`tw_*`, `tilewright*`, `__*`), too deep nesting, too
/// long a text or statement, an empty text, a body without `return`.
/// @throws Error with code snippet, with line and column in the snippet and a hint
Snippet check_snippet(SnippetKind kind, std::string_view text);

/// The same.
/// @param tokens  becomes the text's tokens, which point into it
Snippet check_snippet(SnippetKind kind, std::string_view text, std::vector<SnippetToken>& tokens);

/// All scalars but an i64, which is dropout's seed.
inline bool is_read_by_snippets(const ScalarSpec& scalar) {
  return scalar.dtype != DType::i64;
}

/// The names that a snippet of this spec may use, for messages: indices, lengths, buffers (with
/// their shapes), scalars, functions. Several lines.
std::string names_available(const Spec& spec, SnippetKind kind);

/// C++ functions that every interpretation offers: "tanh", "tanhf", "exp", ...
const std::vector<std::string>& snippet_functions();

/// b, h, h_kv, q_idx, kv_idx, q_len, kv_len, num_q_heads, num_kv_heads, score (which only score_mod
/// sees), q_token and kv_token (which packed layouts alone have).
const std::vector<std::string>& snippet_variables();

/// q_token, kv_token.
bool is_token_name(std::string_view name);

/// The error for one byte of a snippet: its place, excerpt and caret.
Error snippet_error(SnippetKind kind, std::string_view text, std::size_t offset,
                    std::string message, std::string hint, std::vector<std::string> notes = {});

}  // namespace tilewright
