#pragma once

#include <string>
#include <vector>

#include "../generator/snippet/snippet.hpp"
#include "../verify/random.hpp"
#include "expression.hpp"
#include "expression_maker.hpp"
#include "snippet_dice.hpp"
#include "snippet_wish.hpp"
#include "tracked.hpp"

namespace tilewright::verify::fuzz {

/// Random statements before a snippet's last return. What they declare, expressions that are
/// made later can name.
class StatementMaker : private SnippetDice {
 public:
  /// All arguments must outlive it.
  StatementMaker(ExpressionMaker& expressions, Random& random, SnippetKind kind,
                 const SnippetWish& wish)
      : SnippetDice(random), expressions_(expressions), kind_(kind), wish_(wish) {}

  /// Those that the wish asks for, and some others; none where it asks for no body.
  void add_statements();
  /// Puts the result into a local variable, and names it instead.
  void declare_result(Expression& result);

  std::vector<Statement>& statements() { return statements_; }

 private:
  void declare_local();
  void assign_local();
  void declare_lambda();
  void return_early();
  std::string local_name();

  static Expression call(const std::string& name, Type type, const Expression& argument);
  TrackedInteger with_integer(const TrackedInteger& parameter);
  TrackedNumber with_number(const TrackedNumber& parameter);
  TrackedNumber dyadic_below_one();

  ExpressionMaker& expressions_;
  SnippetKind kind_;
  const SnippetWish& wish_;
  std::vector<Statement> statements_ = {};
  int locals_ = 0;
};

}  // namespace tilewright::verify::fuzz
