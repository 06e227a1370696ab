#include "generator/snippet/tree.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

namespace tilewright::snippet {
namespace {

// C++'s usual conversions: of truths to int, of int to long long, of either to the floating type.
Type common_type(std::span<const Expression> operands) {
  for (const Type type : {Type::unknown, Type::floating, Type::wide}) {
    if (std::any_of(operands.begin(), operands.end(),
                    [type](const Expression& x) { return x.type == type; })) {
      return type;
    }
  }
  return Type::integer;
}

Type type_of(Op op, std::span<const Expression> operands) {
  if (const std::optional<Type> result = operation(op).result) return *result;
  const bool chooses = op == Op::select || op == Op::conditional;
  if (chooses) operands = operands.subspan(1);
  if (chooses && operands[0].type == operands[1].type) return operands[0].type;
  const bool shifts = op == Op::shift_left || op == Op::shift_right;
  return common_type(shifts ? operands.first(1) : operands);
}

bool is_same_number(double one, double other) {
  return one == other || (std::isnan(one) && std::isnan(other));
}

}  // namespace

bool operator==(const Expression& one, const Expression& other) {
  const auto rest = [](const Expression& node) {
    return std::tie(node.op, node.type, node.integer, node.name, node.operands);
  };
  return rest(one) == rest(other) && is_same_number(one.number, other.number);
}

Expression integer(std::int64_t value) {
  return {.op = Op::integer_literal, .type = Type::integer, .integer = value};
}

Expression floating(double value) {
  return {.op = Op::floating_literal, .type = Type::floating, .number = value};
}

Expression truth(bool value) {
  return {.op = Op::truth_literal, .type = Type::truth, .integer = value ? 1 : 0};
}

Expression variable(std::string name, Type type) {
  return {.op = Op::variable, .type = type, .name = std::move(name)};
}

Expression read(std::string buffer, Type type, std::vector<Expression> indices) {
  return {.op = Op::read, .type = type, .name = std::move(buffer), .operands = std::move(indices)};
}

Expression apply(Op op, std::vector<Expression> operands) {
  const Type type = type_of(op, operands);
  return {.op = op, .type = type, .operands = std::move(operands)};
}

Expression converted(Expression value, Type type) {
  if (value.type == type) return value;
  const SourceRange range = value.range;
  Expression result = apply(conversion_to(type), {std::move(value)});
  result.range = range;
  return result;
}

const Statement* opaque(const SnippetTree& tree) {
  const bool is_opaque =
      !tree.statements.empty() && tree.statements[0].kind == Statement::Kind::opaque;
  return is_opaque ? &tree.statements[0] : nullptr;
}

std::size_t size_of(const Expression& expression) {
  std::size_t nodes = 0;
  for_each_node(expression, [&](const Expression&) { ++nodes; });
  return nodes;
}

}  // namespace tilewright::snippet
