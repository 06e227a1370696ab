#include "generator/snippet/snippet.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "generator/messages/text_location.hpp"
#include "generator/snippet/brackets.hpp"
#include "generator/snippet/chained_comparisons.hpp"
#include "generator/snippet/function_declarations.hpp"
#include "generator/snippet/misread_operators.hpp"
#include "generator/snippet/names.hpp"
#include "generator/snippet/number.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright {
namespace {

using TokenKind = SnippetToken::Kind;

constexpr std::array<std::string_view, 5> kDigraphs = {"<:", ":>", "<%", "%>", "%:"};

std::string_view closing(std::string_view open) {
  return open == "(" ? ")" : open == "[" ? "]" : "}";
}

std::string_view spelled_out(std::string_view digraph) {
  if (digraph == "<:") return "[";
  if (digraph == ":>") return "]";
  return digraph == "<%" ? "{" : "}";
}

struct OpenBracket {
  const SnippetToken* token;
  bool is_lambda_introducer = false;  // [ of a lambda
  bool is_lambda_body = false;        // { of a lambda, so that `return` in it is the lambda's
  bool is_in_parentheses = false;     // { directly after (
};

// One pass over the tokens. What it finds is reported in order of position.
class Checker {
 public:
  Checker(SnippetKind kind, std::string_view text, const std::vector<SnippetToken>& tokens)
      : kind_(kind), text_(text), tokens_(tokens) {}

  Snippet run() {
    if (tokens_.empty()) {
      throw snippet_error(
          kind_, text_, 0, fmt::format("{} is empty", to_string(kind_)),
          fmt::format("leave {} out where nothing is to be done", to_string(kind_)));
    }
    for (index_ = 0; index_ < tokens_.size(); ++index_) check_token();
    if (!open_.empty()) fail_unclosed();
    Snippet snippet = {.kind = kind_,
                       .text = std::string(text_),
                       .is_expression = !is_body(tokens_),
                       .names = std::move(names_),
                       .score_literals = std::move(score_literals_)};
    if (snippet.is_expression) {
      check_expression();
    } else {
      check_body();
    }
    const SnippetBrackets brackets(kind_, text_, tokens_);
    refuse_function_declarations(brackets);
    refuse_misread_operators(brackets, snippet.is_expression);
    refuse_chained_comparisons(brackets);
    std::sort(snippet.names.begin(), snippet.names.end());
    snippet.names.erase(std::unique(snippet.names.begin(), snippet.names.end()),
                        snippet.names.end());
    return snippet;
  }

 private:
  const SnippetToken& token() const { return tokens_[index_]; }
  std::string_view previous() const { return index_ == 0 ? "" : tokens_[index_ - 1].text; }

  void check_token() {
    count_statement();
    check_comment();
    if (token().kind == TokenKind::identifier) check_identifier();
    if (token().kind == TokenKind::punctuation) check_punctuation();
    if (token().kind == TokenKind::number) check_number();
  }

  void check_number() {
    const NumberLiteral literal = read_number(token().text);
    if (!literal.is_floating || literal.has_suffix) return;
    score_literals_.push_back(token().offset + token().text.size());
  }

  void count_statement() {
    const std::string_view text = token().text;
    const bool in_list = !open_.empty() && open_.back().token->text == "{";
    const bool ends = text == ";" || text == "{" || text == "}" || (text == "," && in_list);
    statement_tokens_ = ends ? 0 : statement_tokens_ + 1;
    if (statement_tokens_ > kMaxStatementTokens) {
      fail(fmt::format("a statement of more than {} words and signs", kMaxStatementTokens),
           "use a loop, or local variables");
    }
  }

  // `q_idx // 2 == 0` divides in Python; here half of it would be a comment.
  void check_comment() const {
    const bool is_operand = token().kind == TokenKind::identifier ||
                            token().kind == TokenKind::number || token().text == ")" ||
                            token().text == "]";
    const std::size_t end = token().offset + token().text.size();
    const std::size_t slashes = text_.find_first_not_of(" \t", end);
    if (!is_operand || slashes == std::string_view::npos || text_.substr(slashes, 2) != "//") {
      return;
    }
    if (is_divisor(text_.substr(slashes + 2))) {
      throw snippet_error(kind_, text_, slashes, "// begins a comment in C++",
                          "floor_div(x, y) is Python's x // y; a comment that reads like a divisor "
                          "may stand on a line of its own");
    }
  }

  // Whether a number or a variable of snippets comes, and then an operator or nothing.
  static bool is_divisor(std::string_view comment) {
    const auto skip = [&comment](std::string_view characters) {
      const std::size_t count = std::min(comment.find_first_not_of(characters), comment.size());
      const std::string_view skipped = comment.substr(0, count);
      comment.remove_prefix(count);
      return skipped;
    };
    skip(" \t");
    const std::string_view word =
        skip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    const std::vector<std::string>& variables = snippet_variables();
    const bool is_value =
        !word.empty() && (word.find_first_not_of("0123456789") == std::string_view::npos ||
                          std::find(variables.begin(), variables.end(), word) != variables.end());
    skip(" \t");
    return is_value &&
           (comment.empty() ||
            std::string_view("\n;)]=!<>&|^+-*/%?:").find(comment[0]) != std::string_view::npos);
  }

  void check_identifier() {
    const std::string_view name = token().text;
    if (const std::string_view reason = why_keyword_is_refused(name); !reason.empty()) {
      fail(fmt::format("\"{}\" is not allowed in a snippet", name), std::string(reason));
    }
    if (is_reserved_name(name)) {
      fail(fmt::format("the name \"{}\" is reserved", printable(name)),
           "choose a name that does not start with tw_, tilewright or _ and a capital, and holds "
           "no __");
    }
    if (name == "return") check_return();
    if (!is_cpp_keyword(name) && previous() != ".") names_.emplace_back(name);
  }

  void check_return() {
    const auto is_lambda = [](const OpenBracket& bracket) { return bracket.is_lambda_body; };
    if (std::any_of(open_.begin(), open_.end(), is_lambda)) return;
    const bool has_next = index_ + 1 < tokens_.size();
    if (has_next && tokens_[index_ + 1].text == ";") {
      fail("return has no value", kind_ == SnippetKind::mask_mod
                                      ? "write return true; or return false;"
                                  : kind_ == SnippetKind::score_mod ? "write return score;"
                                                                    : "write return and the value");
    }
    if (first_return_ == nullptr) first_return_ = &token();
  }

  void check_punctuation() {
    const std::string_view text = token().text;
    if (text == "#" || text == "##" || text == "%:" || is_trigraph_hash()) {
      fail("a snippet must not hold preprocessor directives",
           "use const variables and lambdas for what a macro would do");
    }
    if (text == "::") {
      fail("a name with :: is not available in a snippet",
           "C's functions are there without a namespace: exp, max, abs, INFINITY");
    }
    if (is_one_of(text, kDigraphs)) {
      fail(fmt::format("the digraph {} is not allowed", text),
           fmt::format("write {}, or put a space into it", spelled_out(text)));
    }
    if (is_trigraph()) fail("a trigraph is not allowed", "write the character itself");
    if (text == "(" || text == "[" || text == "{") open();
    if (text == ")" || text == "]" || text == "}") close();
    if (text == ";") check_semicolon();
  }

  bool is_trigraph() const {
    const std::string_view here = text_.substr(token().offset, 3);
    return here.size() == 3 && here.starts_with("\?\?") &&
           std::string_view("=/'()!<>-").find(here[2]) != std::string_view::npos;
  }
  bool is_trigraph_hash() const { return text_.substr(token().offset, 3) == "\?\?="; }

  void open() {
    if (token().text == "[" && previous() == "[") {
      fail("an attribute [[...]] is not allowed", "delete it");
    }
    if (open_.size() == static_cast<std::size_t>(kMaxSnippetNesting)) {
      fail(fmt::format("brackets are nested more than {} deep", kMaxSnippetNesting),
           "use local variables");
    }
    OpenBracket bracket = {.token = &token()};
    if (token().text == "[") bracket.is_lambda_introducer = !stands_after_operand();
    if (token().text == "{") {
      bracket.is_lambda_body = lambda_depth_ == open_.size() + 1;
      bracket.is_in_parentheses = previous() == "(";
      if (bracket.is_lambda_body) lambda_depth_ = 0;
    }
    open_.push_back(bracket);
  }

  // After an operand [ is an index; elsewhere it starts a lambda.
  bool stands_after_operand() const {
    if (index_ == 0) return false;
    const SnippetToken& before = tokens_[index_ - 1];
    if (before.kind == TokenKind::identifier) return before.text != "return";
    return before.kind != TokenKind::punctuation || before.text == ")" || before.text == "]";
  }

  void close() {
    const std::string_view text = token().text;
    if (open_.empty()) {
      fail(fmt::format("{} closes nothing", text), fmt::format("delete it, or open it before"));
    }
    const OpenBracket bracket = open_.back();
    if (closing(bracket.token->text) != text) {
      const SnippetToken& opened = *bracket.token;
      fail(fmt::format("{} closes {}, which was opened in line {}, column {}", text, opened.text,
                       opened.line, opened.column),
           fmt::format("put {} before it", closing(opened.text)), {opened_note(opened)});
    }
    open_.pop_back();
    if (bracket.is_lambda_introducer) lambda_depth_ = open_.size() + 1;
  }

  void check_semicolon() {
    if (!open_.empty() && open_.back().is_in_parentheses) {
      fail("a statement inside ({ }) is not C++", "use a lambda: [&] { ...; return x; }()");
    }
    if (lambda_depth_ == open_.size() + 1) lambda_depth_ = 0;
  }

  void check_expression() const {
    if (first_return_ == nullptr) return;
    throw snippet_error(kind_, text_, end_offset(), "a statement ends without ;", "add ;");
  }

  void check_body() const {
    const SnippetToken& last = tokens_.back();
    if (last.text != ";" && last.text != "}") {
      throw snippet_error(kind_, text_, end_offset(), "the last statement ends without ;",
                          "add ;, or write one expression without any ;");
    }
    if (first_return_ == nullptr) {
      throw snippet_error(kind_, text_, last.offset,
                          fmt::format("{} never returns a value", to_string(kind_)),
                          "a body with ; needs return; an expression needs neither");
    }
  }

  std::size_t end_offset() const { return tokens_.back().offset + tokens_.back().text.size(); }

  std::string opened_note(const SnippetToken& opened) const {
    const SourceLocation place = place_at(to_string(kind_), text_, opened.offset);
    return fmt::format("{} was opened here: {}:{}:{}\n{}", opened.text, place.file, place.line,
                       place.column, place.excerpt);
  }

  [[noreturn]] void fail_unclosed() const {
    const SnippetToken& opened = *open_.back().token;
    throw snippet_error(kind_, text_, opened.offset, fmt::format("{} is never closed", opened.text),
                        fmt::format("add {}", closing(opened.text)));
  }

  [[noreturn]] void fail(std::string message, std::string hint,
                         std::vector<std::string> notes = {}) const {
    throw snippet_error(kind_, text_, token().offset, std::move(message), std::move(hint),
                        std::move(notes));
  }

  SnippetKind kind_;
  std::string_view text_;
  const std::vector<SnippetToken>& tokens_;
  std::size_t index_ = 0;
  std::vector<OpenBracket> open_;
  std::vector<std::string> names_;
  std::vector<std::size_t> score_literals_;
  const SnippetToken* first_return_ = nullptr;  // outside lambdas
  std::size_t lambda_depth_ = 0;  // brackets around a lambda whose { is still to come, plus 1
  int statement_tokens_ = 0;
};

}  // namespace

bool Snippet::mentions(std::string_view name) const {
  return std::binary_search(names.begin(), names.end(), name);
}

Snippet check_snippet(SnippetKind kind, std::string_view text) {
  std::vector<SnippetToken> tokens;
  return check_snippet(kind, text, tokens);
}

Snippet check_snippet(SnippetKind kind, std::string_view text, std::vector<SnippetToken>& tokens) {
  tokens = tokenize(text, kind);
  return Checker(kind, text, tokens).run();
}

Error snippet_error(SnippetKind kind, std::string_view text, std::size_t offset,
                    std::string message, std::string hint, std::vector<std::string> notes) {
  return Error({.code = ErrorCode::snippet,
                .message = std::move(message),
                .place = place_at(to_string(kind), text, offset),
                .notes = std::move(notes),
                .hint = std::move(hint)});
}

}  // namespace tilewright
