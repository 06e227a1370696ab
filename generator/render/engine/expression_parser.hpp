#pragma once

#include <string_view>

#include "ast.hpp"
#include "token_stream.hpp"

namespace tilewright::jinja {

/// Parses expressions with Jinja's precedence, from loosest to tightest: inline if, or, and, not,
/// comparisons, + -, ~, * / // %, ** (from the left), unary + -, then filters, tests, calls, a.b,
/// a[i].
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  /// @throws PlacedComplaint
  ExpressionPtr parse();
  /// An expression without a trailing inline if, as `for x in items if condition` needs it.
  ExpressionPtr parse_without_inline_if() { return parse_or(); }
  /// One expression, or several with commas: a list.
  ExpressionPtr parse_tuple();

 private:
  class Level;

  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  bool parse_comparison_operator(Comparison& op);
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_parentheses();
  ExpressionPtr parse_list();
  ExpressionPtr parse_map();
  ExpressionPtr parse_postfix(ExpressionPtr object);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr input);
  ExpressionPtr parse_filter(ExpressionPtr input);
  ExpressionPtr parse_test(ExpressionPtr input);
  CallArguments parse_arguments();

  ExpressionPtr make(std::uint32_t offset, Expression::Node node, int depth_of_children) const;

  TokenStream& tokens_;
  int nesting_ = 0;
};

}  // namespace tilewright::jinja
