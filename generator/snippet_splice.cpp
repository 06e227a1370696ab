#include "generator/snippet_splice.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "generator/snippet_number.hpp"

namespace tilewright {
namespace {

class Splicer {
 public:
  explicit Splicer(std::string_view text) : text_(text) {}

  // Text of ours at the snippet's current position.
  void insert(std::string text) { pieces_.push_back({std::move(text), line_, column_, false}); }

  void copy_until(std::size_t end) {
    if (end == at_) return;
    const std::string_view text = text_.substr(at_, end - at_);
    pieces_.push_back({std::string(text), line_, column_, true});
    const std::size_t newline = text.rfind('\n');
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    if (newline == std::string_view::npos) {
      column_ += static_cast<int>(text.size());
    } else {
      column_ = static_cast<int>(text.size() - newline);
    }
    at_ = end;
  }

  void copy_rest() { copy_until(text_.size()); }

  std::vector<jinja::Splice::Piece> take() { return std::move(pieces_); }

 private:
  std::string_view text_;
  std::vector<jinja::Splice::Piece> pieces_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

bool has_score_type(const SnippetToken& token) {
  if (token.kind != SnippetToken::Kind::number) return false;
  const NumberLiteral literal = read_number(token.text);
  return literal.is_floating && !literal.has_suffix;
}

}  // namespace

jinja::Splice splice_snippet(const Snippet& snippet, LiteralType literal_type) {
  Splicer splicer(snippet.text);
  if (snippet.is_expression) splicer.insert("return (\n");
  if (literal_type == LiteralType::f32) {
    for (const SnippetToken& token : tokenize(snippet.text, snippet.kind)) {
      if (!has_score_type(token)) continue;
      splicer.copy_until(token.offset + token.text.size());
      splicer.insert("f");
    }
  }
  splicer.copy_rest();
  splicer.insert(snippet.is_expression ? "\n);\n" : "\n");
  return {.origin = std::string(to_string(snippet.kind)), .pieces = splicer.take()};
}

}  // namespace tilewright
