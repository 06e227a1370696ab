#include "generator/snippet/located_reads.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "generator/snippet/brackets.hpp"
#include "generator/snippet/declared_names.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {

std::vector<Replacement> located_reads(const Snippet& snippet, const Spec& spec) {
  const SnippetBrackets brackets(snippet.kind, snippet.text, tokenize(snippet.text, snippet.kind));
  std::vector<Replacement> edits;
  for (std::size_t i = 0; i < brackets.size(); ++i) {
    const SnippetToken& token = brackets.tokens()[i];
    if (!is_identifier(token) || brackets.before(i) == ".") continue;
    const auto buffer = spec.buffers.find(std::string(token.text));
    if (buffer == spec.buffers.end() || buffer->second.shape.empty()) continue;
    const std::string_view next = brackets.text(i + 1);
    const bool is_read = next == "[" || next == "(" || next == ".";
    if (!is_read || may_declare(brackets, token.text)) continue;
    const std::size_t end = token.offset + token.text.size();
    edits.push_back({end, end, fmt::format(".tw_at({})", token.offset)});
  }
  return edits;
}

}  // namespace tilewright
