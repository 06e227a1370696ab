#include "generator/snippet/chained_comparisons.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

bool is_equality(std::string_view text) {
  return text == "==" || text == "!=" || text == "not_eq";
}

// One run of operands and comparisons.
class Chain {
 public:
  explicit Chain(const SnippetBrackets& snippet) : snippet_(snippet) {}

  void start(std::size_t at) {
    begin_ = at;
    comparisons_.clear();
  }
  void add(std::size_t comparison) { comparisons_.push_back(comparison); }

  void end(std::size_t at) const {
    if (comparisons_.size() < 2) return;
    const std::string left = snippet_.excerpt({begin_, comparisons_[1]});
    snippet_.fail(
        comparisons_[1],
        fmt::format("comparisons do not chain in C++: {} compares the truth of {}, 0 or 1",
                    snippet_.text(comparisons_[1]), left),
        hint(at));
  }

 private:
  std::string hint(std::size_t end) const {
    const std::string chained = "write " + joined(end);
    const std::string bracketed = in_brackets(end);
    return bracketed.empty() ? chained : chained + ", or " + bracketed;
  }

  // 0 <= x && x < 5
  std::string joined(std::size_t end) const {
    std::string result;
    for (std::size_t i = 0; i < comparisons_.size(); ++i) {
      const std::size_t left = i == 0 ? begin_ : comparisons_[i - 1] + 1;
      const std::size_t right = i + 1 < comparisons_.size() ? comparisons_[i + 1] : end;
      result += (i == 0 ? "" : " && ") + snippet_.excerpt({left, comparisons_[i]}) + ' ' +
                std::string(snippet_.text(comparisons_[i])) + ' ' +
                snippet_.excerpt({comparisons_[i] + 1, right});
    }
    return result;
  }

  // (a < b) == (c < d), where one equality stands between others; otherwise empty.
  std::string in_brackets(std::size_t end) const {
    const auto is_equal = [this](std::size_t i) { return is_equality(snippet_.text(i)); };
    if (std::count_if(comparisons_.begin(), comparisons_.end(), is_equal) != 1) return {};
    const std::size_t middle = *std::find_if(comparisons_.begin(), comparisons_.end(), is_equal);
    const auto side = [&](std::size_t from, std::size_t to) {
      const std::string text = snippet_.excerpt({from, to});
      const auto count = std::count_if(comparisons_.begin(), comparisons_.end(),
                                       [&](std::size_t i) { return i >= from && i < to; });
      return count == 0 ? text : '(' + text + ')';
    };
    return fmt::format("{} {} {}", side(begin_, middle), snippet_.text(middle),
                       side(middle + 1, end));
  }

  const SnippetBrackets& snippet_;
  std::size_t begin_ = 0;
  std::vector<std::size_t> comparisons_;
};

// Words after which an expression begins.
bool begins_expression(std::string_view word) {
  constexpr std::array<std::string_view, 4> kWords = {"return", "else", "do", "case"};
  return is_one_of(word, kWords);
}

bool has_head(std::string_view word) {
  constexpr std::array<std::string_view, 5> kWords = {"if", "for", "while", "switch", "constexpr"};
  return is_one_of(word, kWords);
}

void refuse_on_level(const SnippetBrackets& snippet, SnippetBrackets::Range level) {
  Chain chain(snippet);
  chain.start(level.begin);
  for (std::size_t i = level.begin; i < level.end; i = snippet.next(i)) {
    const std::string_view text = snippet.text(i);
    if (binds_weaker_than_comparison(text)) {
      chain.end(i);
      chain.start(i + 1);
    } else if (begins_expression(text)) {
      chain.start(i + 1);
    } else if (has_head(text) && snippet.text(i + 1) == "(") {
      chain.start(snippet.next(i + 1));
    } else if (is_comparison(text) && !snippet.opens(i)) {
      chain.add(i);
    } else if (text == "{" &&
               is_identifier(snippet.tokens()[std::min(snippet.next(i), snippet.size() - 1)])) {
      chain.start(snippet.next(i));  // a block, and the next statement
    }
  }
  chain.end(level.end);
}

}  // namespace

void refuse_chained_comparisons(const SnippetBrackets& snippet) {
  for (const SnippetBrackets::Range level : snippet.levels()) refuse_on_level(snippet, level);
}

}  // namespace tilewright
