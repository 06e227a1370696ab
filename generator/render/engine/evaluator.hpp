#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ast.hpp"
#include "complaint.hpp"
#include "scopes.hpp"

namespace tilewright::jinja {

/// Computes expressions: the variables in sight, and what was read of them.
class Evaluator {
 public:
  /// @param context outlives the evaluator
  explicit Evaluator(const Map& context) : context_(context) {}

  /// @throws PlacedComplaint, pointing into the template that the expression belongs to
  Value evaluate(const Expression& expression);

  Scopes& scopes() { return scopes_; }
  Budget& budget() { return budget_; }
  const std::set<std::string>& variables_read() const { return variables_read_; }

 private:
  Value compute(const Literal& literal);
  Value compute(const Name& name);
  Value compute(const ListLiteral& list);
  Value compute(const Attribute& attribute);
  Value compute(const Index& index);
  Value compute(const Range& range);
  Value compute(const FilterCall& filter);
  Value compute(const IsNone& test);
  Value compute(const Not& negation);
  Value compute(const Binary& binary);
  Value compute(const InlineIf& inline_if);

  List evaluate_all(const std::vector<ExpressionPtr>& expressions);
  Value copy(const Value& value);
  std::vector<std::string> names_in_sight() const;

  const Map& context_;
  Scopes scopes_;
  Budget budget_;
  std::set<std::string> variables_read_;
};

}  // namespace tilewright::jinja
