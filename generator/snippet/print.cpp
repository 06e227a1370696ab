#include "generator/snippet/print.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "generator/snippet/operators.hpp"

namespace tilewright::snippet {
namespace {

bool is_negative_literal(const Expression& expression) {
  return (expression.op == Op::integer_literal && expression.integer < 0) ||
         (expression.op == Op::floating_literal && expression.number < 0);
}

int precedence_of(const Expression& expression) {
  if (const Infix* infix = find_infix(expression.op)) return infix->precedence;
  if (expression.op == Op::conditional) return kConditional;
  if (expression.op == Op::negate || expression.op == Op::logical_not) return kUnary;
  if (expression.op == Op::times_2_to_32) return kProduct;
  return is_negative_literal(expression) ? kUnary : kPrimary;
}

// In parentheses unless it binds at least as tightly.
std::string operand_text(const Expression& operand, int precedence) {
  const std::string text = to_text(operand);
  return precedence_of(operand) < precedence ? "(" + text + ")" : text;
}

std::string floating_text(double value) {
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string list_text(const std::vector<Expression>& operands) {
  std::vector<std::string> texts;
  for (const Expression& operand : operands) texts.push_back(to_text(operand));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string infix_text(const Expression& expression, const Infix& infix) {
  // Compilers warn of `a & b == c`, `a << b + c`, `a || b && c` and `a < b < c`.
  const int left = infix.precedence >= kSum        ? infix.precedence
                   : infix.precedence == kRelation ? kShift
                                                   : kSum;
  return fmt::format("{} {} {}", operand_text(expression.operands[0], left), infix.sign,
                     operand_text(expression.operands[1], std::max(left, infix.precedence + 1)));
}

std::string indented(const std::vector<Statement>& statements, int depth);

std::string statement_text(const Statement& statement, int depth) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  switch (statement.kind) {
    case Statement::Kind::declare: {
      // A declaration converts its value by itself.
      const Expression& value = statement.value;
      const bool converts = value.op >= Op::to_floating && value.op <= Op::to_wide;
      return fmt::format("{}{} {} = {};\n", indent, to_string(value.type), statement.name,
                         to_text(converts ? value.operands[0] : value));
    }
    case Statement::Kind::lambda: {
      std::vector<std::string> parameters;
      for (const Parameter& parameter : statement.parameters) {
        parameters.push_back(fmt::format("{} {}", to_string(parameter.type), parameter.name));
      }
      return fmt::format("{}auto {} = [{}]({}) {{ return {}; }};\n", indent, statement.name,
                         statement.captures_references ? "&" : "=", fmt::join(parameters, ", "),
                         to_text(statement.value));
    }
    case Statement::Kind::assign:
      return fmt::format("{}{} = {};\n", indent, statement.name, to_text(statement.value));
    case Statement::Kind::branch: {
      std::string text = fmt::format("{}if ({}) {{\n{}{}}}", indent, to_text(statement.value),
                                     indented(statement.body, depth + 1), indent);
      if (!statement.otherwise.empty()) {
        text += fmt::format(" else {{\n{}{}}}", indented(statement.otherwise, depth + 1), indent);
      }
      return text + '\n';
    }
    case Statement::Kind::result:
      return fmt::format("{}return {};\n", indent, to_text(statement.value));
    case Statement::Kind::block:
      return fmt::format("{}{{\n{}{}}}\n", indent, indented(statement.body, depth + 1), indent);
    case Statement::Kind::loop:
      return fmt::format("{}while ({}) {{\n{}{}}}\n", indent, to_text(statement.value),
                         indented(statement.body, depth + 1), indent);
    case Statement::Kind::opaque:
      break;  // has no text but the user's
  }
  return {};
}

std::string indented(const std::vector<Statement>& statements, int depth) {
  std::string text;
  for (const Statement& statement : statements) text += statement_text(statement, depth);
  return text;
}

std::size_t size_of(const std::vector<Statement>& statements) {
  std::size_t sum = 0;
  for (const Statement& statement : statements) {
    sum += 1 + size_of(statement.value) + size_of(statement.body) + size_of(statement.otherwise);
  }
  return sum;
}

}  // namespace

std::string to_text(const Expression& expression) {
  const std::vector<Expression>& operands = expression.operands;
  if (const Infix* infix = find_infix(expression.op)) return infix_text(expression, *infix);
  switch (expression.op) {
    case Op::integer_literal:
      return fmt::format("{}{}", expression.integer, expression.type == Type::wide ? "ll" : "");
    case Op::floating_literal:
      return floating_text(expression.number);
    case Op::truth_literal:
      return expression.integer != 0 ? "true" : "false";
    case Op::variable:
      return expression.name;
    case Op::read:
      if (operands.empty()) return expression.name;
      return operands.size() == 1 ? fmt::format("{}[{}]", expression.name, to_text(operands[0]))
                                  : fmt::format("{}({})", expression.name, list_text(operands));
    case Op::size:
      return fmt::format("{}.size({})", expression.name, expression.integer);
    case Op::call:
      return fmt::format("{}({})", expression.name, list_text(operands));
    case Op::negate:
      return "-" + operand_text(operands[0], kPrimary);
    case Op::logical_not:
      return "!" + operand_text(operands[0], kPrimary);
    case Op::conditional:
      return fmt::format("{} ? {} : {}", operand_text(operands[0], kSum),
                         operand_text(operands[1], kOr), operand_text(operands[2], kOr));
    case Op::to_floating:
      return fmt::format("float({})", list_text(operands));
    case Op::to_integer:
      return fmt::format("int({})", list_text(operands));
    case Op::times_2_to_32:
      return operand_text(operands[0], kProduct) + " * 4294967296ll";
    case Op::to_unsigned:
      return fmt::format("(unsigned)({})", list_text(operands));
    case Op::to_wide_unsigned:
      return fmt::format("(unsigned long long)({})", list_text(operands));
    case Op::to_truth:
      return fmt::format("bool({})", list_text(operands));
    case Op::to_wide:
      return fmt::format("static_cast<long long>({})", list_text(operands));
    default:
      return fmt::format("{}({})", to_string(expression.op), list_text(operands));
  }
}

std::string to_text(const SnippetTree& tree) {
  if (tree.statements.size() == 1 && tree.statements[0].kind == Statement::Kind::result) {
    return to_text(tree.statements[0].value);
  }
  std::string text = indented(tree.statements, 0);
  if (!text.empty()) text.pop_back();
  return text;
}

std::size_t size_of(const Expression& expression) {
  return std::accumulate(
      expression.operands.begin(), expression.operands.end(), std::size_t{1},
      [](std::size_t sum, const Expression& operand) { return sum + size_of(operand); });
}

std::size_t size_of(const SnippetTree& tree) {
  return size_of(tree.statements);
}

}  // namespace tilewright::snippet
