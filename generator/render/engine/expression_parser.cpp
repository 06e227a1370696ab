#include "generator/render/engine/expression_parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "generator/render/engine/filters.hpp"
#include "generator/render/engine/refused.hpp"

namespace tilewright::jinja {
namespace {

constexpr std::array<std::string_view, 14> kReserved = {"and",   "or",   "not",  "in",   "is",
                                                        "if",    "else", "elif", "for",  "true",
                                                        "false", "none", "loop", "range"};

struct Infix {
  std::string_view op;
  int level;  // operators of a higher level bind more tightly
};
constexpr std::array kInfixes = {Infix{"or", 1}, Infix{"and", 2}, Infix{"==", 4}, Infix{"!=", 4},
                                 Infix{"<", 4},  Infix{"<=", 4},  Infix{">", 4},  Infix{">=", 4},
                                 Infix{"+", 5},  Infix{"-", 5},   Infix{"~", 6},  Infix{"*", 7},
                                 Infix{"//", 7}, Infix{"%", 7}};
constexpr int kOrLevel = 1;
constexpr int kNotLevel = 3;  // more tightly than `and`, more loosely than a comparison
constexpr int kComparisonLevel = 4;

ExpressionPtr make(std::uint32_t offset, Expression::Node node) {
  return std::make_unique<Expression>(Expression{offset, std::move(node)});
}

std::int64_t parse_integer(std::string_view token) {
  if (token.size() > 1 && token[0] == '0') {
    throw Complaint{fmt::format("the number {} has a leading zero", in_quotes(token)),
                    "numbers are decimal"};
  }
  std::int64_t value = 0;
  const auto result = std::from_chars(token.data(), token.data() + token.size(), value);
  if (result.ec == std::errc()) return value;
  throw Complaint{fmt::format("the number {} does not fit in 64 bits", in_quotes(token))};
}

char unescaped(char letter) {
  if (letter == 'n') return '\n';
  if (letter == 't') return '\t';
  if (letter == '\\' || letter == '"' || letter == '\'') return letter;
  throw Complaint{
      fmt::format("unknown escape {} in a string", in_quotes("\\" + std::string(1, letter))),
      R"(known are \n \t \\ \" \'; write \\ for a backslash)"};
}

// The token has its quotes, and a backslash is never its last letter.
std::string parse_string(std::string_view token) {
  const std::string_view inside = token.substr(1, token.size() - 2);
  std::string text;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    text += inside[i] == '\\' ? unescaped(inside[++i]) : inside[i];
  }
  return text;
}

// Literals are computed while parsing; what is wrong with one is wrong at its token.
template <typename Parse>
Literal literal(const Token& token, Parse parse) {
  try {
    return {Value(parse(token.text))};
  } catch (Complaint& complaint) {
    throw PlacedComplaint{token.offset, std::move(complaint)};
  }
}

}  // namespace

bool is_reserved(std::string_view name) {
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

ExpressionPtr ExpressionParser::parse(const Complaint& no_else) {
  ExpressionPtr value = parse_infix(kOrLevel);
  if (!tokens_.at("if")) return value;
  const Token token = tokens_.next();
  ExpressionPtr condition = parse_infix(kOrLevel);
  if (!tokens_.skip("else")) TokenStream::fail(token, no_else);
  ExpressionPtr otherwise = parse(no_else);
  return make(token.offset, InlineIf{std::move(condition), std::move(value), std::move(otherwise)});
}

int ExpressionParser::level_here() const {
  const Token& token = tokens_.peek();
  if (token.kind != TokenKind::symbol && token.kind != TokenKind::name) return 0;
  if (auto complaint = refused_operator(token.text))
    TokenStream::fail(token, std::move(*complaint));
  const auto* const found = std::find_if(
      kInfixes.begin(), kInfixes.end(), [&](const Infix& infix) { return infix.op == token.text; });
  return found == kInfixes.end() ? 0 : found->level;
}

// Operators of level `loosest` and tighter ones; those of one level from the left.
ExpressionPtr ExpressionParser::parse_infix(int loosest) {
  ExpressionPtr left = tokens_.at("not") ? parse_not(loosest) : parse_filtered();
  int before = 0;
  for (int level = level_here(); level >= loosest; level = level_here()) {
    const Token token = tokens_.next();
    if (level == kComparisonLevel && before == level) {
      TokenStream::fail(token,
                        {"a chain of comparisons is not supported", "write `a < b and b < c`"});
    }
    before = level;
    ExpressionPtr right = parse_infix(level + 1);
    left = make(token.offset, Binary{token.text, std::move(left), std::move(right)});
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not(int loosest) {
  if (loosest > kNotLevel) tokens_.fail_expected("an expression", "put `not ...` in parentheses");
  const std::uint32_t offset = tokens_.next().offset;
  ExpressionPtr operand = parse_infix(kNotLevel);
  return make(offset, Not{std::move(operand)});
}

ExpressionPtr ExpressionParser::parse_filtered() {
  ExpressionPtr value = parse_minus();
  while (true) {
    if (tokens_.skip("|")) {
      value = parse_filter(std::move(value));
    } else if (tokens_.skip("is")) {
      value = parse_test(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::parse_minus() {
  if (!tokens_.at("-")) return parse_postfix(parse_primary());
  const std::uint32_t offset = tokens_.next().offset;
  ExpressionPtr operand = parse_minus();
  return make(offset, Binary{"-", make(offset, Literal{0}), std::move(operand)});
}

// {"key": value}, and not C++ braces: {1, 2}.
bool ExpressionParser::is_map_literal() const {
  if (!tokens_.at("{")) return false;
  const TokenKind key = tokens_.peek(1).kind;
  const bool is_key = key == TokenKind::string || key == TokenKind::name;
  return is_key && tokens_.peek(2).kind == TokenKind::symbol && tokens_.peek(2).text == ":";
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token token = tokens_.peek();
  if (token.kind == TokenKind::integer) {
    return make(tokens_.next().offset, literal(token, parse_integer));
  }
  if (token.kind == TokenKind::string) {
    return make(tokens_.next().offset, literal(token, parse_string));
  }
  if (token.kind == TokenKind::name) return parse_name();
  if (tokens_.skip("(")) {
    ExpressionPtr inside = parse();
    tokens_.expect(")", tokens_.at(",") ? "a list is written [a, b]" : "");
    return inside;
  }
  if (token.text == "[") return parse_list();
  if (auto complaint = refused_operator(token.text))
    TokenStream::fail(token, std::move(*complaint));
  if (is_map_literal()) {
    TokenStream::fail(token, {"a map literal is not supported",
                              "write {% set name = value %} for each value, or pass the map as a "
                              "variable"});
  }
  const bool is_brace = token.text == "{" || token.kind == TokenKind::variable_end;
  tokens_.fail_expected("an expression",
                        is_brace ? "for C++ braces put a space between them: { {" : "");
}

ExpressionPtr ExpressionParser::parse_name() {
  const Token token = tokens_.peek();
  const bool is_literal = token.text == "true" || token.text == "false" || token.text == "none";
  if (!is_literal && token.text != "loop" && token.text != "range" && is_reserved(token.text)) {
    tokens_.fail_expected("an expression");
  }
  tokens_.next();
  if (token.text == "none") return make(token.offset, Literal{});
  if (is_literal) return make(token.offset, Literal{token.text == "true"});
  if (!tokens_.at("(")) return make(token.offset, Name{token.text});
  if (token.text != "range") TokenStream::fail(token, refused_call(token.text));
  return parse_range(token.offset);
}

ExpressionPtr ExpressionParser::parse_list() {
  const std::uint32_t offset = tokens_.next().offset;
  ListLiteral list;
  while (!tokens_.skip("]")) {
    if (!list.items.empty()) tokens_.expect(",");
    list.items.push_back(parse());
  }
  return make(offset, std::move(list));
}

ExpressionPtr ExpressionParser::parse_range(std::uint32_t offset) {
  Range range;
  tokens_.expect("(");
  do {
    if (range.bounds.size() == 3) tokens_.fail_expected("`)`", "range(begin, end, step)");
    range.bounds.push_back(parse());
  } while (tokens_.skip(","));
  tokens_.expect(")");
  return make(offset, std::move(range));
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr object) {
  while (true) {
    if (tokens_.skip(".")) {
      object = parse_attribute(std::move(object));
    } else if (tokens_.skip("[")) {
      object = parse_index(std::move(object));
    } else {
      return object;
    }
  }
}

ExpressionPtr ExpressionParser::parse_attribute(ExpressionPtr object) {
  const Token name = tokens_.peek();
  if (name.kind != TokenKind::name) tokens_.fail_expected("a name after `.`");
  tokens_.next();
  if (tokens_.at("(")) TokenStream::fail(name, refused_call(name.text));
  return make(name.offset, Attribute{std::move(object), name.text});
}

ExpressionPtr ExpressionParser::parse_index(ExpressionPtr object) {
  const Token first = tokens_.peek();
  if (first.kind == TokenKind::string) {
    TokenStream::fail(first, {"a string as an index is not supported", "write `map.name`"});
  }
  ExpressionPtr index = tokens_.at(":") ? nullptr : parse();
  tokens_.expect("]", tokens_.at(":") ? "slices are not supported: loop over it" : "");
  return make(first.offset, Index{std::move(object), std::move(index)});
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr input) {
  const Token name = tokens_.peek();
  if (name.kind != TokenKind::name) {
    tokens_.fail_expected("a filter's name after `|`", "write `or` for a condition");
  }
  const Filter* const filter = find_filter(name.text);
  if (!filter) TokenStream::fail(name, refused_filter(name.text));
  tokens_.next();
  ExpressionPtr argument;
  if (filter->takes_argument) {
    tokens_.expect("(", "write `|join(\", \")`");
    argument = parse();
    tokens_.expect(")");
  } else if (tokens_.at("(")) {
    TokenStream::fail(tokens_.peek(), {fmt::format("the filter {} takes no argument", name.text)});
  }
  return make(name.offset, FilterCall{std::move(input), filter, std::move(argument)});
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  const bool negated = tokens_.skip("not");
  const Token name = tokens_.peek();
  if (name.kind != TokenKind::name) tokens_.fail_expected("a test's name after `is`");
  if (name.text != "none") TokenStream::fail(name, refused_test(name.text));
  tokens_.next();
  return make(name.offset, IsNone{std::move(input), negated});
}

}  // namespace tilewright::jinja
