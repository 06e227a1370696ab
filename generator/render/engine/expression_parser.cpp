#include "generator/render/engine/expression_parser.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.hpp"
#include "generator/render/engine/filters.hpp"
#include "generator/render/engine/literals.hpp"
#include "generator/render/engine/value_tests.hpp"

namespace tilewright::jinja {
namespace {

constexpr std::array<std::string_view, 9> kKeywords = {"and", "or",   "not",  "in", "is",
                                                       "if",  "else", "elif", "for"};

bool is_keyword(std::string_view name) {
  return std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end();
}

int depth(const ExpressionPtr& expression) {
  return expression ? expression->depth : 0;
}

int depth(const std::vector<ExpressionPtr>& expressions) {
  int deepest = 0;
  for (const ExpressionPtr& expression : expressions)
    deepest = std::max(deepest, depth(expression));
  return deepest;
}

int depth(const CallArguments& arguments) {
  int deepest = depth(arguments.positional);
  for (const auto& [name, value] : arguments.named) deepest = std::max(deepest, depth(value));
  return deepest;
}

// Literals are computed while parsing; what is wrong with one is wrong at its token.
template <typename Parse>
Value literal(const Token& token, Parse parse) {
  try {
    return Value(parse(token.text));
  } catch (Complaint& complaint) {
    throw PlacedComplaint{token.offset, std::move(complaint)};
  }
}

}  // namespace

// Counts the levels that the parser itself recurses.
class ExpressionParser::Level {
 public:
  explicit Level(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxExpressionDepth) {
      TokenStream::fail(
          parser_.tokens_.peek(),
          fmt::format("an expression nests deeper than {} levels", kMaxExpressionDepth));
    }
  }
  ~Level() { --parser_.nesting_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  ExpressionParser& parser_;
};

ExpressionPtr ExpressionParser::make(std::uint32_t offset, Expression::Node node,
                                     int depth_of_children) const {
  if (depth_of_children >= kMaxExpressionDepth) {
    throw PlacedComplaint{
        offset,
        {fmt::format("an expression nests deeper than {} levels", kMaxExpressionDepth),
         "use {% set %} to name a part of it"}};
  }
  return std::make_unique<Expression>(Expression{offset, depth_of_children + 1, std::move(node)});
}

ExpressionPtr ExpressionParser::parse() {
  const Level level(*this);
  ExpressionPtr value = parse_or();
  while (tokens_.at_word("if")) {
    const std::uint32_t offset = tokens_.next().offset;
    ExpressionPtr condition = parse_or();
    ExpressionPtr otherwise = tokens_.skip_word("else") ? parse() : nullptr;
    const int deepest = std::max({depth(value), depth(condition), depth(otherwise)});
    value = make(offset, InlineIf{std::move(condition), std::move(value), std::move(otherwise)},
                 deepest);
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_tuple() {
  const std::uint32_t offset = tokens_.peek().offset;
  ExpressionPtr first = parse();
  if (!tokens_.at_symbol(",")) return first;
  ListLiteral list;
  list.items.push_back(std::move(first));
  while (tokens_.skip_symbol(",")) {
    if (tokens_.at(TokenKind::block_end) || tokens_.at_symbol(")")) break;
    list.items.push_back(parse());
  }
  const int deepest = depth(list.items);
  return make(offset, std::move(list), deepest);
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (tokens_.at_word("or")) {
    const std::uint32_t offset = tokens_.next().offset;
    ExpressionPtr right = parse_and();
    const int deepest = std::max(depth(left), depth(right));
    left = make(offset, Logical{false, std::move(left), std::move(right)}, deepest);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (tokens_.at_word("and")) {
    const std::uint32_t offset = tokens_.next().offset;
    ExpressionPtr right = parse_not();
    const int deepest = std::max(depth(left), depth(right));
    left = make(offset, Logical{true, std::move(left), std::move(right)}, deepest);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.at_word("not")) return parse_comparison();
  const Level level(*this);
  const std::uint32_t offset = tokens_.next().offset;
  ExpressionPtr operand = parse_not();
  const int deepest = depth(operand);
  return make(offset, Unary{UnaryOperator::logical_not, std::move(operand)}, deepest);
}

ExpressionPtr ExpressionParser::parse_comparison() {
  ExpressionPtr first = parse_sum();
  int deepest = depth(first);
  Compare compare;
  Comparison op{};
  std::uint32_t offset = tokens_.peek().offset;
  while (parse_comparison_operator(op)) {
    compare.links.push_back({op, offset, parse_sum()});
    deepest = std::max(deepest, depth(compare.links.back().right));
    offset = tokens_.peek().offset;
  }
  if (compare.links.empty()) return first;
  compare.first = std::move(first);
  offset = compare.links.front().offset;
  return make(offset, std::move(compare), deepest);
}

bool ExpressionParser::parse_comparison_operator(Comparison& op) {
  static constexpr std::array<std::pair<std::string_view, Comparison>, 6> kSymbols = {
      {{"==", Comparison::eq},
       {"!=", Comparison::ne},
       {"<", Comparison::lt},
       {"<=", Comparison::le},
       {">", Comparison::gt},
       {">=", Comparison::ge}}};
  for (const auto& [symbol, comparison] : kSymbols) {
    if (!tokens_.skip_symbol(symbol)) continue;
    op = comparison;
    return true;
  }
  op = tokens_.at_word("not") ? Comparison::not_in : Comparison::in;
  if (tokens_.skip_word("not")) {
    tokens_.expect_word("in", "`not` stands before what it negates, or in `not in`");
    return true;
  }
  return tokens_.skip_word("in");
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  while (tokens_.at_symbol("+") || tokens_.at_symbol("-")) {
    const Token token = tokens_.next();
    ExpressionPtr right = parse_concatenation();
    const auto op = token.text == "+" ? BinaryOperator::add : BinaryOperator::subtract;
    const int deepest = std::max(depth(left), depth(right));
    left = make(token.offset, Binary{op, std::move(left), std::move(right)}, deepest);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  ExpressionPtr first = parse_product();
  if (!tokens_.at_symbol("~")) return first;
  const std::uint32_t offset = tokens_.peek().offset;
  Concatenation concatenation;
  concatenation.parts.push_back(std::move(first));
  while (tokens_.skip_symbol("~")) concatenation.parts.push_back(parse_product());
  const int deepest = depth(concatenation.parts);
  return make(offset, std::move(concatenation), deepest);
}

ExpressionPtr ExpressionParser::parse_product() {
  static constexpr std::array<std::pair<std::string_view, BinaryOperator>, 4> kOperators = {
      {{"*", BinaryOperator::multiply},
       {"/", BinaryOperator::divide},
       {"//", BinaryOperator::floor_divide},
       {"%", BinaryOperator::modulo}}};
  ExpressionPtr left = parse_power();
  while (true) {
    const auto* found =
        std::find_if(kOperators.begin(), kOperators.end(),
                     [&](const auto& candidate) { return tokens_.at_symbol(candidate.first); });
    if (found == kOperators.end()) return left;
    const std::uint32_t offset = tokens_.next().offset;
    ExpressionPtr right = parse_power();
    const int deepest = std::max(depth(left), depth(right));
    left = make(offset, Binary{found->second, std::move(left), std::move(right)}, deepest);
  }
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary(true);
  while (tokens_.at_symbol("**")) {
    const std::uint32_t offset = tokens_.next().offset;
    ExpressionPtr right = parse_unary(true);
    const int deepest = std::max(depth(left), depth(right));
    left = make(offset, Binary{BinaryOperator::power, std::move(left), std::move(right)}, deepest);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filters) {
  ExpressionPtr value;
  if (tokens_.at_symbol("-") || tokens_.at_symbol("+")) {
    const Level level(*this);
    const Token token = tokens_.next();
    ExpressionPtr operand = parse_unary(false);
    const auto op = token.text == "-" ? UnaryOperator::minus : UnaryOperator::plus;
    const int deepest = depth(operand);
    value = make(token.offset, Unary{op, std::move(operand)}, deepest);
  } else {
    value = parse_postfix(parse_primary());
  }
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token token = tokens_.peek();
  switch (token.kind) {
    case TokenKind::integer:
      tokens_.next();
      return make(token.offset, Literal{literal(token, parse_integer)}, 0);
    case TokenKind::floating:
      tokens_.next();
      return make(token.offset, Literal{literal(token, parse_float)}, 0);
    case TokenKind::string: {
      std::string text;
      while (tokens_.at(TokenKind::string))
        text += *literal(tokens_.next(), parse_string).as_string();
      return make(token.offset, Literal{Value(std::move(text))}, 0);
    }
    case TokenKind::name:
      break;
    default:
      if (token.text == "(") return parse_parentheses();
      if (token.text == "[") return parse_list();
      if (token.text == "{") return parse_map();
      tokens_.fail_expected("an expression", token.kind == TokenKind::variable_end
                                                 ? "for C++ braces put a space between them: { {"
                                                 : "");
  }
  if (is_keyword(token.text)) tokens_.fail_expected("an expression");
  tokens_.next();
  if (token.text == "true" || token.text == "True") return make(token.offset, Literal{true}, 0);
  if (token.text == "false" || token.text == "False") return make(token.offset, Literal{false}, 0);
  if (token.text == "none" || token.text == "None") return make(token.offset, Literal{}, 0);
  return make(token.offset, Name{token.text}, 0);
}

ExpressionPtr ExpressionParser::parse_parentheses() {
  const std::uint32_t offset = tokens_.next().offset;
  if (tokens_.skip_symbol(")")) return make(offset, ListLiteral{}, 0);
  ExpressionPtr inside = parse_tuple();
  tokens_.expect_symbol(")");
  return inside;
}

ExpressionPtr ExpressionParser::parse_list() {
  const std::uint32_t offset = tokens_.next().offset;
  ListLiteral list;
  while (!tokens_.skip_symbol("]")) {
    if (!list.items.empty()) tokens_.expect_symbol(",");
    if (tokens_.skip_symbol("]")) break;
    list.items.push_back(parse());
  }
  const int deepest = depth(list.items);
  return make(offset, std::move(list), deepest);
}

ExpressionPtr ExpressionParser::parse_map() {
  const std::uint32_t offset = tokens_.next().offset;
  MapLiteral map;
  int deepest = 0;
  while (!tokens_.skip_symbol("}")) {
    if (!map.items.empty()) tokens_.expect_symbol(",");
    if (tokens_.skip_symbol("}")) break;
    ExpressionPtr key = parse();
    tokens_.expect_symbol(":",
                          "a map is written {\"key\": value}; for C++ braces put a space "
                          "between them: { {");
    ExpressionPtr value = parse();
    deepest = std::max({deepest, depth(key), depth(value)});
    map.items.emplace_back(std::move(key), std::move(value));
  }
  return make(offset, std::move(map), deepest);
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr object) {
  while (true) {
    if (tokens_.skip_symbol(".")) {
      const Token name = tokens_.peek();
      if (name.kind != TokenKind::name) tokens_.fail_expected("a name after `.`");
      tokens_.next();
      const int deepest = depth(object);
      object = make(name.offset, Attribute{std::move(object), name.text}, deepest);
    } else if (tokens_.skip_symbol("[")) {
      object = parse_subscript(std::move(object));
    } else if (tokens_.at_symbol("(")) {
      const std::uint32_t offset = object->offset;
      CallArguments arguments = parse_arguments();
      const int deepest = std::max(depth(object), depth(arguments));
      object = make(offset, Call{std::move(object), std::move(arguments)}, deepest);
    } else {
      return object;
    }
  }
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  const std::uint32_t offset = tokens_.peek().offset;
  ExpressionPtr index = tokens_.at_symbol(":") ? nullptr : parse();
  if (!tokens_.skip_symbol(":")) {
    tokens_.expect_symbol("]");
    const int deepest = std::max(depth(object), depth(index));
    return make(offset, Index{std::move(object), std::move(index)}, deepest);
  }
  ExpressionPtr end = tokens_.at_symbol("]") ? nullptr : parse();
  tokens_.expect_symbol("]", "a slice is written [begin:end]; steps are not supported");
  const int deepest = std::max({depth(object), depth(index), depth(end)});
  return make(offset, Slice{std::move(object), std::move(index), std::move(end)}, deepest);
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr input) {
  while (true) {
    if (tokens_.skip_symbol("|")) {
      input = parse_filter(std::move(input));
    } else if (tokens_.skip_word("is")) {
      input = parse_test(std::move(input));
    } else {
      return input;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr input) {
  const Token name = tokens_.peek();
  if (name.kind != TokenKind::name) tokens_.fail_expected("a filter's name after `|`");
  const Filter* const filter = find_filter(name.text);
  if (!filter) {
    const std::vector<std::string> names = filter_names();
    const std::string hint = did_you_mean(name.text, names);
    TokenStream::fail(
        name, fmt::format("no filter is called \"{}\"", name.text),
        hint.empty() ? "filters are " + fmt::format("{}", fmt::join(names, ", ")) : hint);
  }
  tokens_.next();
  CallArguments arguments = tokens_.at_symbol("(") ? parse_arguments() : CallArguments{};
  const int deepest = std::max(depth(input), depth(arguments));
  return make(name.offset, FilterCall{std::move(input), filter, std::move(arguments)}, deepest);
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  const bool negated = tokens_.skip_word("not");
  const Token name = tokens_.peek();
  if (name.kind != TokenKind::name) tokens_.fail_expected("a test's name after `is`");
  const ValueTest* const test = find_value_test(name.text);
  if (!test) {
    const std::vector<std::string> names = value_test_names();
    const std::string hint = did_you_mean(name.text, names);
    TokenStream::fail(
        name, fmt::format("no test is called \"{}\"", name.text),
        hint.empty() ? "tests are " + fmt::format("{}", fmt::join(names, ", ")) : hint);
  }
  tokens_.next();
  ExpressionPtr argument;
  if (test->takes_argument) {
    const Level level(*this);
    argument = parse_postfix(parse_primary());
  } else if (tokens_.at_symbol("(")) {
    TokenStream::fail(tokens_.peek(), fmt::format("the test \"{}\" takes no argument", name.text));
  }
  const int deepest = std::max(depth(input), depth(argument));
  return make(name.offset, TestCall{std::move(input), test, std::move(argument), negated}, deepest);
}

CallArguments ExpressionParser::parse_arguments() {
  const Level level(*this);
  tokens_.expect_symbol("(");
  CallArguments arguments;
  bool first = true;
  while (!tokens_.skip_symbol(")")) {
    if (!first) tokens_.expect_symbol(",");
    first = false;
    if (tokens_.skip_symbol(")")) break;
    const Token name = tokens_.peek();
    const Token& after = tokens_.peek(1);
    const bool is_named = name.kind == TokenKind::name && after.text == "=";
    if (is_named) {
      for (const auto& [other, value] : arguments.named) {
        if (other == name.text) {
          TokenStream::fail(name, fmt::format("the argument \"{}\" is given twice", name.text));
        }
      }
      tokens_.next();
      tokens_.next();
      arguments.named.emplace_back(name.text, parse());
    } else if (tokens_.at_symbol("*") || tokens_.at_symbol("**")) {
      TokenStream::fail(name, "unpacking arguments is not supported", "write them one by one");
    } else {
      if (!arguments.named.empty()) {
        TokenStream::fail(name, "a positional argument follows a named one");
      }
      arguments.positional.push_back(parse());
    }
  }
  return arguments;
}

}  // namespace tilewright::jinja
