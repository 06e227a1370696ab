#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ast.hpp"
#include "complaint.hpp"
#include "scopes.hpp"
#include "token_stream.hpp"

namespace tilewright::jinja {

/// Computes expressions: the variables in sight, and what was read of them.
class Evaluator {
 public:
  /// @param context outlives the evaluator
  explicit Evaluator(const Map& context) : context_(context) {}

  /// @throws PlacedComplaint, pointing into the template that the expression belongs to
  Value evaluate(const Expression& expression);
  bool is_true(const Expression& expression);

  Scopes& scopes() { return scopes_; }
  Budget& budget() { return budget_; }
  /// The loops around the current statement; the last one is `loop`.
  std::vector<LoopState>& loops() { return loops_; }
  const std::set<std::string>& variables_read() const { return variables_read_; }

 private:
  // The value, or nothing where it is undefined; then *why (if asked for) says so.
  std::optional<Value> evaluate_or_undefined(const Expression& expression, Complaint* why);
  std::optional<Value> lookup(const Name& name, Complaint* why);
  std::optional<Value> lookup(const Attribute& attribute, Complaint* why);
  std::optional<Value> lookup(const Index& index, Complaint* why);
  std::optional<Value> lookup(const InlineIf& inline_if, Complaint* why);

  Value compute(const Literal& literal);
  Value compute(const ListLiteral& list);
  Value compute(const MapLiteral& map);
  Value compute(const Slice& slice);
  Value compute(const Call& call);
  Value compute(const FilterCall& filter);
  Value compute(const TestCall& test);
  Value compute(const Unary& unary);
  Value compute(const Binary& binary);
  Value compute(const Logical& logical);
  Value compute(const Compare& compare);
  Value compute(const Concatenation& concatenation);

  Value compute_default(const FilterCall& filter);
  Value call_function(const Function& function, const Arguments& arguments);
  Arguments evaluate(const CallArguments& arguments);
  Value copy(const Value& value);
  const LoopState* loop_of(const Expression& expression) const;
  std::vector<std::string> names_in_sight() const;

  const Map& context_;
  Scopes scopes_;
  std::vector<LoopState> loops_;
  Budget budget_;
  std::set<std::string> variables_read_;
};

}  // namespace tilewright::jinja
