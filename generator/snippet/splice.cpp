#include "generator/snippet/splice.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright {
namespace {

class Splicer {
 public:
  explicit Splicer(std::string_view text) : text_(text) {}

  // Text of ours at the snippet's current position.
  void insert(std::string text) { pieces_.push_back({std::move(text), line_, column_, false}); }

  void copy_until(std::size_t end) {
    if (end == at_) return;
    pieces_.push_back({std::string(text_.substr(at_, end - at_)), line_, column_, true});
    skip_until(end);
  }

  void skip_until(std::size_t end) {
    const std::string_view text = text_.substr(at_, end - at_);
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

}  // namespace

jinja::Splice splice_snippet(const Snippet& snippet, LiteralType literal_type,
                             const std::vector<Replacement>& replacements) {
  Splicer splicer(snippet.text);
  if (snippet.is_expression) splicer.insert("return (\n");
  std::vector<Replacement> edits = replacements;
  if (literal_type == LiteralType::f32) {
    for (const std::size_t at : snippet.score_literals) edits.push_back({at, at, "f"});
  }
  std::sort(edits.begin(), edits.end(),
            [](const Replacement& a, const Replacement& b) { return a.begin < b.begin; });
  for (Replacement& edit : edits) {
    splicer.copy_until(edit.begin);
    splicer.insert(std::move(edit.text));
    splicer.skip_until(edit.end);
  }
  splicer.copy_rest();
  splicer.insert(snippet.is_expression ? "\n);\n" : "\n");
  return {.origin = std::string(to_string(snippet.kind)), .pieces = splicer.take()};
}

}  // namespace tilewright
