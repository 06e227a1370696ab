#include "fuzz/statement_maker.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tilewright::verify::fuzz {

void StatementMaker::add_statements() {
  if (!wish_.is_body) return;
  if (is_wanted(wish_, Factor::local, 1) || one_in(3)) declare_local();
  if (is_wanted(wish_, Factor::local, 2) || one_in(6)) assign_local();
  if (is_wanted(wish_, Factor::local, 3) || one_in(6)) declare_lambda();
  if (is_wanted(wish_, Factor::choice, 3) || one_in(5)) return_early();
}

void StatementMaker::declare_local() {
  const std::string name = local_name();
  Statement statement{.kind = Statement::Kind::declare, .name = name};
  const std::int64_t kind = below(kind_ == SnippetKind::mask_mod ? 2 : 4);
  if (kind == 0) {
    TrackedInteger value = expressions_.integer_value(2);
    statement.value = std::move(value.expression);
    value.expression = variable(name);
    expressions_.locals.integers.push_back(std::move(value));
  } else if (kind == 1) {
    statement.value = expressions_.truth(2);
    expressions_.locals.truths.push_back(variable(name, Type::truth));
  } else {
    TrackedNumber value = expressions_.number(2);
    statement.value = std::move(value.expression);
    value.expression = variable(name, Type::floating);
    expressions_.locals.numbers.push_back(std::move(value));
  }
  statements_.push_back(std::move(statement));
}

// int x = a; if (condition) { x = b; } else { x = c; }
void StatementMaker::assign_local() {
  const std::string name = local_name();
  Statement declaration{.kind = Statement::Kind::declare, .name = name};
  Statement first{.kind = Statement::Kind::assign, .name = name};
  Statement second = first;
  if (kind_ == SnippetKind::mask_mod || one_in(3)) {
    TrackedInteger a = expressions_.integer_value(1), b = expressions_.integer_value(1),
                   c = expressions_.integer_value(1);
    expressions_.locals.integers.push_back({variable(name), std::min({a.least, b.least, c.least}),
                                            std::max({a.greatest, b.greatest, c.greatest})});
    declaration.value = std::move(a.expression);
    first.value = std::move(b.expression);
    second.value = std::move(c.expression);
  } else {
    // A literal keeps it a float: it cannot be mistaken for an int.
    TrackedNumber a = expressions_.number(1), b = expressions_.number(1),
                  c = expressions_.number(1);
    expressions_.locals.numbers.push_back({variable(name, Type::floating),
                                           std::max({a.bound, b.bound, c.bound}),
                                           std::max({a.slope, b.slope, c.slope}), false});
    declaration.value = std::move(a.expression);
    first.value = std::move(b.expression);
    second.value = std::move(c.expression);
  }
  Statement branch{.kind = Statement::Kind::branch, .value = expressions_.truth(1)};
  branch.body.push_back(std::move(first));
  if (one_in(2)) branch.otherwise.push_back(std::move(second));
  statements_.push_back(std::move(declaration));
  statements_.push_back(std::move(branch));
}

void StatementMaker::declare_lambda() {
  const std::string name = fmt::format("f{}", locals_++);
  const std::string parameter = local_name();
  Statement lambda{.kind = Statement::Kind::lambda, .name = name};
  if (kind_ == SnippetKind::mask_mod) {
    const TrackedInteger argument = ExpressionMaker::limited(expressions_.integer_value(1), 1000);
    const TrackedInteger value =
        with_integer({variable(parameter), argument.least, argument.greatest});
    lambda.parameters = {variable(parameter)};
    lambda.value = value.expression;
    expressions_.locals.integers.push_back(
        {call(name, Type::integer, argument.expression), value.least, value.greatest});
  } else {
    const TrackedNumber argument = expressions_.number(1);
    TrackedNumber value =
        with_number({variable(parameter, Type::floating), argument.bound, argument.slope, false});
    lambda.parameters = {variable(parameter, Type::floating)};
    lambda.value = std::move(value.expression);
    value.expression = call(name, Type::floating, argument.expression);
    expressions_.locals.numbers.push_back(std::move(value));
  }
  statements_.push_back(std::move(lambda));
}

TrackedInteger StatementMaker::with_integer(const TrackedInteger& parameter) {
  expressions_.locals.integers.push_back(parameter);
  TrackedInteger value =
      add(ExpressionMaker::limited(expressions_.integer_value(1), ExpressionMaker::kHalfOfInt),
          parameter);
  expressions_.locals.integers.pop_back();
  return value;
}

TrackedNumber StatementMaker::with_number(const TrackedNumber& parameter) {
  expressions_.locals.numbers.push_back(parameter);
  const TrackedNumber value = expressions_.sum(
      ExpressionMaker::product(parameter, dyadic_below_one()), expressions_.number(1));
  expressions_.locals.numbers.pop_back();
  return value.slope <= ExpressionMaker::kMaxSlope && value.bound <= ExpressionMaker::kMaxBound
             ? value
             : ExpressionMaker::product(parameter, dyadic_below_one());
}

TrackedNumber StatementMaker::dyadic_below_one() {
  const double value = static_cast<double>(between(1, 8)) / 8;
  return {floating(value), value, 0, true};
}

Expression StatementMaker::call(const std::string& name, Type type, const Expression& argument) {
  return {.op = Op::call, .type = type, .name = name, .operands = {argument}};
}

void StatementMaker::return_early() {
  Statement branch{.kind = Statement::Kind::branch, .value = expressions_.truth(2)};
  Expression value =
      kind_ == SnippetKind::mask_mod
          ? (one_in(2) ? fuzz::truth(one_in(2)) : expressions_.truth(1))
          : (one_in(4) ? ExpressionMaker::minus_infinity() : expressions_.number(1).expression);
  if (value.type == Type::integer) value = apply(Op::to_floating, {std::move(value)});
  branch.body.push_back({.kind = Statement::Kind::result, .value = std::move(value)});
  statements_.push_back(std::move(branch));
}

void StatementMaker::declare_result(Expression& result) {
  const std::string name = local_name();
  const Type type = result.type;
  statements_.push_back(
      {.kind = Statement::Kind::declare, .name = name, .value = std::move(result)});
  result = variable(name, type);
}

std::string StatementMaker::local_name() {
  return fmt::format("x{}", locals_++);
}

}  // namespace tilewright::verify::fuzz
