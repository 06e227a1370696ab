#include "generator/snippet/print.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace tilewright::snippet {
namespace {

int precedence_of(const Expression& node) {
  return begins_with_minus(node) ? kUnary : operation(node.op).precedence;
}

// In parentheses unless it binds at least as tightly.
std::string operand_text(const Expression& operand, int precedence) {
  const std::string text = to_text(operand);
  return precedence_of(operand) < precedence ? "(" + text + ")" : text;
}

std::string floating_text(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string call_text(std::string_view function, const std::vector<Expression>& operands) {
  std::vector<std::string> texts;
  for (const Expression& operand : operands) texts.push_back(to_text(operand));
  return fmt::format("{}({})", function, fmt::join(texts, ", "));
}

std::string infix_text(const Operation& infix, const std::vector<Expression>& operands) {
  // Compilers warn of `a & b == c`, `a << b + c`, `a || b && c` and `a < b < c`.
  const int left = infix.precedence >= kSum        ? infix.precedence
                   : infix.precedence == kRelation ? kShift
                                                   : kSum;
  const int right = std::max(left, infix.precedence + 1);
  return fmt::format("{} {} {}", operand_text(operands[0], left), infix.text,
                     operand_text(operands[1], right));
}

std::string text_of(const std::vector<Statement>& statements, const std::string& indent);

std::string block_text(const std::vector<Statement>& statements, const std::string& indent) {
  return fmt::format("{{\n{}{}}}", text_of(statements, indent + "  "), indent);
}

std::string lambda_text(const Statement& lambda) {
  std::vector<std::string> parameters;
  for (const Expression& parameter : lambda.parameters) {
    parameters.push_back(fmt::format("{} {}", to_string(parameter.type), parameter.name));
  }
  return fmt::format("auto {} = [{}]({}) {{ return {}; }};", lambda.name,
                     lambda.captures_references ? "&" : "=", fmt::join(parameters, ", "),
                     to_text(lambda.value));
}

std::string text_of(const Statement& statement, const std::string& indent) {
  const Expression& value = statement.value;
  const std::string text = to_text(value);
  // A declaration converts its value by itself. A written conversion makes a float of a difference
  // of indices without an int on the way (templates/cuda/snippet/index.hpp).
  const bool converts = operation(value.op).is_conversion() &&
                        !(value.op == Op::to_floating && value.operands[0].op == Op::subtract);
  switch (statement.kind) {
    case Statement::Kind::declare:
      return fmt::format("{} {} = {};", to_string(value.type), statement.name,
                         converts ? to_text(value.operands[0]) : text);
    case Statement::Kind::lambda:
      return lambda_text(statement);
    case Statement::Kind::assign:
      return fmt::format("{} = {};", statement.name, text);
    case Statement::Kind::branch:
      return fmt::format(
          "if ({}) {}{}", text, block_text(statement.body, indent),
          statement.otherwise.empty() ? "" : " else " + block_text(statement.otherwise, indent));
    case Statement::Kind::result:
      return fmt::format("return {};", text);
    case Statement::Kind::loop:
      return fmt::format("while ({}) {}", text, block_text(statement.body, indent));
    case Statement::Kind::leave:
      return "break;";
    case Statement::Kind::opaque:
      break;  // has no text but the user's
  }
  return {};
}

std::string text_of(const std::vector<Statement>& statements, const std::string& indent) {
  std::string text;
  for (const Statement& statement : statements) {
    text += indent + text_of(statement, indent) + '\n';
  }
  return text;
}

}  // namespace

bool begins_with_minus(const Expression& node) {
  return (node.op == Op::integer_literal && node.integer < 0) ||
         (node.op == Op::floating_literal && std::signbit(node.number));
}

std::string to_text(const Expression& node) {
  const std::vector<Expression>& operands = node.operands;
  const Operation& row = operation(node.op);
  switch (node.op) {
    case Op::integer_literal:
      return fmt::format("{}{}", node.integer, node.type == Type::wide ? "ll" : "");
    case Op::floating_literal:
      return floating_text(node.number);
    case Op::truth_literal:
      return node.integer != 0 ? "true" : "false";
    case Op::variable:
      return node.name;
    case Op::size:
      return fmt::format("{}.size({})", node.name, node.integer);
    case Op::read:
      if (operands.empty()) return node.name;
      if (operands.size() == 1) return fmt::format("{}[{}]", node.name, to_text(operands[0]));
      return call_text(node.name, operands);
    case Op::call:
      return call_text(node.name, operands);
    case Op::conditional:
      return fmt::format("{} ? {} : {}", operand_text(operands[0], kSum),
                         operand_text(operands[1], kOr), operand_text(operands[2], kOr));
    case Op::times_2_to_32:
      return fmt::format("{} {}", operand_text(operands[0], kProduct), row.text);
    default:
      if (row.is_infix()) return infix_text(row, operands);
      if (row.precedence == kPrimary) return call_text(row.text, operands);
      return fmt::format("{}{}", row.text, operand_text(operands[0], kPrimary));
  }
}

std::string to_text(const SnippetTree& tree) {
  const std::vector<Statement>& all = tree.statements;
  if (all.size() == 1 && all[0].kind == Statement::Kind::result) return to_text(all[0].value);
  std::string text = text_of(all, "");
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace tilewright::snippet
