#pragma once

#include <string_view>

#include "ast.hpp"
#include "complaint.hpp"
#include "token_stream.hpp"

namespace tilewright::jinja {

/// Whether a name is a word of the language and thus not a variable's: `and`, `true`, `loop`.
bool is_reserved(std::string_view name);

/// Parses expressions with Jinja's precedence, from loosest to tightest: inline if, or, and, not,
/// comparisons, + -, ~, * // %, unary -, then filters and `is none`, then a.b and a[i].
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  /// @param no_else  what is wrong where an inline `if` has no `else`
  /// @throws PlacedComplaint
  ExpressionPtr parse(const Complaint& no_else = {"this `if` has no `else`",
                                                  "add one, as in: a if c else \"\""});

 private:
  int level_here() const;
  ExpressionPtr parse_infix(int loosest);
  ExpressionPtr parse_not(int loosest);
  ExpressionPtr parse_filtered();
  ExpressionPtr parse_minus();
  bool is_map_literal() const;
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_list();
  ExpressionPtr parse_range(std::uint32_t offset);
  ExpressionPtr parse_postfix(ExpressionPtr object);
  ExpressionPtr parse_attribute(ExpressionPtr object);
  ExpressionPtr parse_index(ExpressionPtr object);
  ExpressionPtr parse_filter(ExpressionPtr input);
  ExpressionPtr parse_test(ExpressionPtr input);

  TokenStream& tokens_;
};

}  // namespace tilewright::jinja
