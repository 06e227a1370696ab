#include <string>
#include <utility>

#include <fmt/format.h>

#include "generator/render/engine/ast.hpp"
#include "generator/render/engine/expression_parser.hpp"
#include "generator/render/engine/refused.hpp"
#include "generator/render/engine/text_directives.hpp"

namespace tilewright::jinja {
namespace {

/// Parses statements; the tag that opened the current block is passed down for messages.
class StatementParser {
 public:
  explicit StatementParser(Template& parsed)
      : parsed_(parsed), tokens_(parsed.source.text()), expressions_(tokens_) {}

  void parse() {
    parsed_.body = parse_block();
    if (!tokens_.at(TokenKind::end)) fail_unexpected_tag(tokens_.peek(1));
  }

 private:
  // Statements up to a tag that goes on with or ends a block, or to the end of the template;
  // consumes neither.
  Block parse_block() {
    Block block;
    while (!tokens_.at(TokenKind::end)) {
      const Token token = tokens_.peek();
      if (token.kind == TokenKind::text) {
        tokens_.next();
        parsed_.is_header |= append_text(parsed_.source, token.offset, token.text, block);
      } else if (token.kind == TokenKind::variable_begin) {
        block.push_back(parse_print());
      } else {
        const Token& tag = tokens_.peek(1);
        if (tag.kind != TokenKind::name) {
          tokens_.next();
          tokens_.fail_expected("a tag's name");
        }
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
    return {offset, Print{parse_last(TokenKind::variable_end)}};
  }

  Statement parse_tag() {
    tokens_.next();
    const Token tag = tokens_.next();
    if (tag.text == "if") return parse_if(tag);
    if (tag.text == "for") return parse_for(tag);
    if (tag.text == "set") return parse_set(tag);
    if (tag.text == "include") return parse_include(tag);
    TokenStream::fail(tag, refused_tag(tag.text));
  }

  Statement parse_if(const Token& opening) {
    enter_block(opening);
    If node;
    node.branches.push_back({parse_last(), {}});
    while (true) {
      If::Branch& branch = node.branches.back();
      branch.body = parse_block();
      const Token tag = next_tag_of(opening, "endif");
      const bool had_else = branch.condition == nullptr;
      if (tag.text == "endif") break;
      if (tag.text == "endfor" || had_else) fail_unexpected_tag(tag, &opening, "endif");
      if (tag.text == "elif") {
        node.branches.push_back({parse_last(), {}});
      } else {
        if (tokens_.at("if")) tokens_.fail_expected("`%}` after `else`", "write `elif`");
        tokens_.expect_end_of(TokenKind::block_end);
        node.branches.push_back({nullptr, {}});
      }
    }
    tokens_.expect_end_of(TokenKind::block_end);
    --nesting_;
    return {opening.offset, std::move(node)};
  }

  // The expression that ends a tag.
  ExpressionPtr parse_last(TokenKind tag_end = TokenKind::block_end) {
    ExpressionPtr expression = expressions_.parse();
    tokens_.expect_end_of(tag_end);
    return expression;
  }

  Statement parse_for(const Token& opening) {
    enter_block(opening);
    For node;
    node.variable = parse_variable("a loop variable");
    tokens_.expect("in", "a loop is written {% for x in items %}");
    node.items_begin = tokens_.peek().offset;
    node.items =
        expressions_.parse({"a loop with a condition, `for x in items if c`, is not supported",
                            "write {% if c %} inside the loop"});
    tokens_.expect_end_of(TokenKind::block_end);
    node.body = parse_block();
    const Token tag = next_tag_of(opening, "endfor");
    if (tag.text != "endfor") {
      fail_unexpected_tag(tag, &opening, "endfor",
                          tag.text == "else" ? "; a loop has no `else`: test the list" : "");
    }
    tokens_.expect_end_of(TokenKind::block_end);
    --nesting_;
    return {opening.offset, std::move(node)};
  }

  Statement parse_set(const Token& tag) {
    Set node;
    node.variable = parse_variable("a variable");
    tokens_.expect("=", "write {% set name = value %}; values never change");
    node.value = parse_last();
    return {tag.offset, std::move(node)};
  }

  Statement parse_include(const Token& tag) {
    Include node;
    node.name_begin = tokens_.peek().offset;
    node.name = parse_last();
    return {tag.offset, std::move(node)};
  }

  std::string_view parse_variable(std::string_view what) {
    const Token name = tokens_.peek();
    if (name.kind != TokenKind::name) tokens_.fail_expected(fmt::format("{}'s name", what));
    if (is_reserved(name.text)) {
      TokenStream::fail(name, {fmt::format("`{}` cannot be set", name.text)});
    }
    tokens_.next();
    if (tokens_.at(",")) {
      TokenStream::fail(tokens_.peek(),
                        {"unpacking into several names is not supported",
                         "loop over maps and write `item.name`, or set one name at a time"});
    }
    return name.text;
  }

  void enter_block(const Token& opening) {
    if (++nesting_ > kMaxBlockDepth) {
      TokenStream::fail(opening, {fmt::format("blocks nest deeper than {} levels", kMaxBlockDepth),
                                  "move the inner ones to a template of their own"});
    }
  }

  // The tag that ended a block of `opening`.
  Token next_tag_of(const Token& opening, std::string_view end) {
    if (tokens_.at(TokenKind::end)) {
      TokenStream::fail(opening, {fmt::format("this `{}` is never closed", opening.text),
                                  fmt::format("write {{% {} %}} where it ends", end)});
    }
    tokens_.next();
    return tokens_.next();
  }

  [[noreturn]] void fail_unexpected_tag(const Token& tag, const Token* opening = nullptr,
                                        std::string_view end = {},
                                        std::string_view advice = {}) const {
    if (!opening) {
      TokenStream::fail(tag, {fmt::format("`{}` closes nothing", tag.text),
                              "the tag that opened the block is missing or already closed"});
    }
    TokenStream::fail(tag, {fmt::format("expected `{}`, found `{}`", end, tag.text),
                            fmt::format("the `{}` of line {} is still open{}", opening->text,
                                        parsed_.source.position(opening->offset).line, advice)});
  }

  Template& parsed_;
  TokenStream tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
};

}  // namespace

std::unique_ptr<const Template> parse_template(TemplateText source) {
  if (source.text().size() > kMaxTemplateBytes) {
    throw PlacedComplaint{0,
                          {fmt::format("the template is larger than {} bytes", kMaxTemplateBytes)}};
  }
  auto parsed = std::make_unique<Template>(std::move(source));
  StatementParser(*parsed).parse();
  return parsed;
}

}  // namespace tilewright::jinja
