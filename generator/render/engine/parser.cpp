#include "generator/render/engine/parser.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/render/engine/expression_parser.hpp"
#include "generator/render/engine/text_directives.hpp"

namespace tilewright::jinja {
namespace {

const std::vector<std::string>& tag_names() {
  static const auto& names = *new std::vector<std::string>{
      "if", "elif", "else", "endif", "for", "set", "endfor", "include", "raw", "endraw"};
  return names;
}

/// Parses statements; the tag that opened the current block is passed down for messages.
class StatementParser {
 public:
  explicit StatementParser(const TemplateText& source)
      : source_(source), tokens_(source.text()), expressions_(tokens_) {}

  Block parse() {
    Block block = parse_block({});
    if (!tokens_.at(TokenKind::end)) fail_unexpected_tag(tokens_.peek(1));
    return block;
  }

  bool is_header() const { return is_header_; }

 private:
  // Statements up to one of the tags in `ends`, or the end of the template; consumes neither.
  Block parse_block(std::initializer_list<std::string_view> ends) {
    Block block;
    while (!tokens_.at(TokenKind::end)) {
      const Token token = tokens_.peek();
      if (token.kind == TokenKind::text) {
        tokens_.next();
        is_header_ |= append_text(source_, token.offset, token.text, block);
      } else if (token.kind == TokenKind::variable_begin) {
        block.push_back(parse_print());
      } else {
        const Token& tag = tokens_.peek(1);
        if (tag.kind != TokenKind::name) {
          tokens_.next();
          tokens_.fail_expected("a tag's name");
        }
        if (std::find(ends.begin(), ends.end(), tag.text) != ends.end()) break;
        if (is_inner_tag(tag.text)) break;
        block.push_back(parse_tag());
      }
    }
    return block;
  }

  static bool is_inner_tag(std::string_view tag) {
    return tag == "elif" || tag == "else" || tag == "endif" || tag == "endfor";
  }

  Statement parse_print() {
    tokens_.next();
    const std::uint32_t offset = tokens_.peek().offset;
    Print print{expressions_.parse()};
    tokens_.expect_end_of(TokenKind::variable_end);
    return {offset, std::move(print)};
  }

  Statement parse_tag() {
    tokens_.next();
    const Token tag = tokens_.next();
    if (tag.text == "if") return parse_if(tag);
    if (tag.text == "for") return parse_for(tag);
    if (tag.text == "set") return parse_set(tag);
    if (tag.text == "include") return parse_include(tag);
    fail_unknown_tag(tag);
  }

  Statement parse_if(const Token& opening) {
    enter_block(opening);
    If node;
    node.branches.push_back({parse_condition(), {}});
    while (true) {
      If::Branch& branch = node.branches.back();
      branch.body = parse_block({"elif", "else", "endif"});
      const Token tag = next_tag_of(opening, "endif");
      const bool had_else = branch.condition == nullptr;
      if (tag.text == "endif") break;
      if (tag.text == "endfor" || had_else) fail_unexpected_tag(tag, &opening, "endif");
      if (tag.text == "elif") {
        node.branches.push_back({parse_condition(), {}});
      } else {
        end_else();
        node.branches.push_back({nullptr, {}});
      }
    }
    tokens_.expect_end_of(TokenKind::block_end);
    --nesting_;
    return {opening.offset, std::move(node)};
  }

  ExpressionPtr parse_condition() {
    ExpressionPtr condition = expressions_.parse();
    tokens_.expect_end_of(TokenKind::block_end);
    return condition;
  }

  Statement parse_for(const Token& opening) {
    enter_block(opening);
    For node;
    node.targets = parse_targets("a loop variable");
    tokens_.expect_word("in", "a loop is written {% for x in items %}");
    node.items_begin = tokens_.peek().offset;
    node.items = parse_loop_items();
    if (tokens_.skip_word("if")) node.condition = expressions_.parse();
    if (tokens_.at_word("recursive")) {
      TokenStream::fail(tokens_.peek(), "recursive loops are not supported");
    }
    tokens_.expect_end_of(TokenKind::block_end);
    node.body = parse_block({"else", "endfor"});
    Token tag = next_tag_of(opening, "endfor");
    if (tag.text == "else") {
      end_else();
      node.otherwise = parse_block({"endfor"});
      tag = next_tag_of(opening, "endfor");
    }
    if (tag.text != "endfor") fail_unexpected_tag(tag, &opening, "endfor");
    tokens_.expect_end_of(TokenKind::block_end);
    --nesting_;
    return {opening.offset, std::move(node)};
  }

  // `for x in a, b` loops over the list [a, b]; an inline if would swallow the loop's own
  // condition.
  ExpressionPtr parse_loop_items() {
    const std::uint32_t offset = tokens_.peek().offset;
    ExpressionPtr first = expressions_.parse_without_inline_if();
    if (!tokens_.at_symbol(",")) return first;
    ListLiteral list;
    int deepest = first->depth;
    list.items.push_back(std::move(first));
    while (tokens_.skip_symbol(",") && !tokens_.at(TokenKind::block_end)) {
      list.items.push_back(expressions_.parse_without_inline_if());
      deepest = std::max(deepest, list.items.back()->depth);
    }
    return std::make_unique<Expression>(Expression{offset, deepest + 1, std::move(list)});
  }

  Statement parse_set(const Token& tag) {
    Set node;
    node.targets = parse_targets("a variable");
    if (tokens_.at_symbol(".")) {
      TokenStream::fail(tokens_.peek(), "an attribute cannot be set",
                        "values never change; set a variable of its own");
    }
    if (tokens_.at(TokenKind::block_end)) {
      TokenStream::fail(tokens_.peek(), "{% set %} around a block is not supported",
                        "write {% set name = value %}");
    }
    tokens_.expect_symbol("=");
    node.value_begin = tokens_.peek().offset;
    node.value = expressions_.parse_tuple();
    tokens_.expect_end_of(TokenKind::block_end);
    return {tag.offset, std::move(node)};
  }

  Statement parse_include(const Token& tag) {
    Include node;
    node.name_begin = tokens_.peek().offset;
    node.name = expressions_.parse();
    if (tokens_.at(TokenKind::name)) {
      TokenStream::fail(tokens_.peek(),
                        fmt::format("`{}` is not supported in an include", tokens_.peek().text),
                        "the included template sees every variable, and it must exist");
    }
    tokens_.expect_end_of(TokenKind::block_end);
    return {tag.offset, std::move(node)};
  }

  std::vector<std::string_view> parse_targets(std::string_view what) {
    std::vector<std::string_view> targets;
    const bool parenthesised = tokens_.skip_symbol("(");
    do {
      if (!targets.empty() && !tokens_.at(TokenKind::name)) break;
      const Token name = tokens_.peek();
      static constexpr std::string_view kReserved[] = {
          "true", "false", "none", "True", "False", "None", "loop", "and",
          "or",   "not",   "in",   "is",   "if",    "else", "elif", "for"};
      const bool reserved =
          std::find(std::begin(kReserved), std::end(kReserved), name.text) != std::end(kReserved);
      if (name.kind != TokenKind::name) tokens_.fail_expected(fmt::format("{}'s name", what));
      if (reserved) TokenStream::fail(name, fmt::format("`{}` cannot be set", name.text));
      if (std::find(targets.begin(), targets.end(), name.text) != targets.end()) {
        TokenStream::fail(name, fmt::format("`{}` is set twice", name.text));
      }
      targets.push_back(tokens_.next().text);
    } while (tokens_.skip_symbol(","));
    if (parenthesised) tokens_.expect_symbol(")");
    return targets;
  }

  void enter_block(const Token& opening) {
    if (++nesting_ > kMaxBlockDepth) {
      TokenStream::fail(opening, fmt::format("blocks nest deeper than {} levels", kMaxBlockDepth),
                        "move the inner ones to a template of their own");
    }
  }

  // The tag that ended a block of `opening`.
  Token next_tag_of(const Token& opening, std::string_view end) {
    if (tokens_.at(TokenKind::end)) {
      TokenStream::fail(opening, fmt::format("this `{}` is never closed", opening.text),
                        fmt::format("write {{% {} %}} where it ends", end));
    }
    tokens_.next();
    return tokens_.next();
  }

  void end_else() {
    if (tokens_.at_word("if")) {
      TokenStream::fail(tokens_.peek(), "expected `%}` after `else`", "write `elif`");
    }
    tokens_.expect_end_of(TokenKind::block_end);
  }

  [[noreturn]] void fail_unexpected_tag(const Token& tag, const Token* opening = nullptr,
                                        std::string_view end = {}) const {
    if (!opening) {
      TokenStream::fail(tag, fmt::format("`{}` closes nothing", tag.text),
                        "the tag that opened the block is missing or already closed");
    }
    TokenStream::fail(tag, fmt::format("expected `{}`, found `{}`", end, tag.text),
                      fmt::format("the `{}` of line {} is still open", opening->text,
                                  source_.position(opening->offset).line));
  }

  [[noreturn]] static void fail_unknown_tag(const Token& tag) {
    static constexpr std::string_view kUnsupported[] = {
        "macro", "call", "extends", "block",    "import",     "from", "filter",
        "do",    "with", "break",   "continue", "autoescape", "trans"};
    const bool known = std::find(std::begin(kUnsupported), std::end(kUnsupported), tag.text) !=
                       std::end(kUnsupported);
    if (known) {
      TokenStream::fail(tag, fmt::format("the tag `{}` of Jinja is not supported", tag.text),
                        "docs/templates.md lists what is; {% include %} often serves");
    }
    std::string hint = tag.text == "elseif" || tag.text == "elsif" ? "write `elif`" : "";
    if (tag.text == "endraw") hint = "{% raw %} is missing before it";
    if (hint.empty()) hint = did_you_mean(tag.text, tag_names());
    if (hint.empty()) hint = fmt::format("tags are {}", fmt::join(tag_names(), ", "));
    const bool stray_end = tag.text == "endraw";
    TokenStream::fail(
        tag,
        stray_end ? "`endraw` closes nothing" : fmt::format("no tag is called \"{}\"", tag.text),
        std::move(hint));
  }

  const TemplateText& source_;
  TokenStream tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
  bool is_header_ = false;
};

}  // namespace

std::unique_ptr<const Template> parse_template(TemplateText source) {
  if (source.text().size() > kMaxTemplateBytes) {
    throw PlacedComplaint{0,
                          {fmt::format("the template is larger than {} bytes", kMaxTemplateBytes)}};
  }
  auto parsed = std::make_unique<Template>(std::move(source));
  StatementParser parser(parsed->source);
  parsed->body = parser.parse();
  parsed->is_header = parser.is_header();
  return parsed;
}

}  // namespace tilewright::jinja
