#include "verify/fuzz/rewrite.hpp"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

namespace tilewright::verify::fuzz {

std::string with_names(SnippetKind kind, std::string_view text,
                       const std::map<std::string, std::string, std::less<>>& replacements) {
  std::string result;
  std::size_t copied = 0;
  bool is_member = false;
  for (const SnippetToken& token : tokenize(text, kind)) {
    const auto found = replacements.find(token.text);
    const bool is_name = token.kind == SnippetToken::Kind::identifier && !is_member;
    is_member = token.text == "." || token.text == "->";
    if (!is_name || found == replacements.end()) continue;
    result += text.substr(copied, token.offset - copied);
    result += found->second;
    copied = token.offset + token.text.size();
  }
  return result += text.substr(copied);
}

std::string as_lambda(SnippetKind kind, std::string_view text, std::string_view name) {
  const bool is_score = kind == SnippetKind::score_mod;
  const std::string_view type = is_score ? "float" : "bool";
  if (text.empty()) text = is_score ? "score" : "true";
  // A line of its own for the end, as the text may end with a comment.
  const bool is_expression = check_snippet(kind, text).is_expression;
  return fmt::format("const auto {} = [&]() -> {} {{\n{}{}{}\n}};\n", name, type,
                     is_expression ? "return (" : "", text, is_expression ? "\n);" : "");
}

std::string around(SnippetKind kind, std::string_view text, std::string_view result) {
  return fmt::format("{}return {};", as_lambda(kind, text, "original"), result);
}

}  // namespace tilewright::verify::fuzz
