#include "generator/snippet_result.hpp"

#include <algorithm>

namespace tilewright {

std::optional<TokenRange> result_of(const Snippet& snippet,
                                    const std::vector<SnippetToken>& tokens) {
  if (snippet.is_expression) return TokenRange{0, tokens.size()};
  std::optional<TokenRange> result;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == "{") return {};  // a condition, a loop or a lambda
    if (tokens[i].text != "return") continue;
    if (result) return {};
    const auto end = std::find_if(tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.end(),
                                  [](const SnippetToken& token) { return token.text == ";"; });
    result = TokenRange{i + 1, static_cast<std::size_t>(end - tokens.begin())};
    // `if (x) return y;`
    if (i > 0 && tokens[i - 1].text != ";") return {};
  }
  return result;
}

void blank(const std::vector<SnippetToken>& tokens, TokenRange range, std::string& text) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    text.replace(tokens[i].offset, tokens[i].text.size(), tokens[i].text.size(), ' ');
  }
}

}  // namespace tilewright
