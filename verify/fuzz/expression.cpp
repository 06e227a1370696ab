#include "verify/fuzz/expression.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/enum_names.hpp"
#include "base/error.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr std::array<std::pair<Op, std::string_view>, 56> kOps = {{
    {Op::integer_literal, "integer"},
    {Op::floating_literal, "floating"},
    {Op::truth_literal, "truth"},
    {Op::variable, "variable"},
    {Op::read, "read"},
    {Op::size, "size"},
    {Op::call, "call"},
    {Op::add, "add"},
    {Op::subtract, "subtract"},
    {Op::multiply, "multiply"},
    {Op::divide, "divide"},
    {Op::remainder, "remainder"},
    {Op::negate, "negate"},
    {Op::shift_left, "shift_left"},
    {Op::shift_right, "shift_right"},
    {Op::bit_and, "bit_and"},
    {Op::bit_or, "bit_or"},
    {Op::bit_xor, "bit_xor"},
    {Op::less, "less"},
    {Op::less_equal, "less_equal"},
    {Op::greater, "greater"},
    {Op::greater_equal, "greater_equal"},
    {Op::equal, "equal"},
    {Op::not_equal, "not_equal"},
    {Op::logical_and, "and"},
    {Op::logical_or, "or"},
    {Op::logical_not, "not"},
    {Op::minimum, "min"},
    {Op::maximum, "max"},
    {Op::floor_quotient, "floor_div"},
    {Op::floor_remainder, "floor_mod"},
    {Op::absolute, "abs"},
    {Op::sign, "sign"},
    {Op::clamp, "clamp"},
    {Op::tanh, "tanh"},
    {Op::exp, "exp"},
    {Op::exp2, "exp2"},
    {Op::expm1, "expm1"},
    {Op::log, "log"},
    {Op::log2, "log2"},
    {Op::log1p, "log1p"},
    {Op::erf, "erf"},
    {Op::erfc, "erfc"},
    {Op::sqrt, "sqrt"},
    {Op::rsqrt, "rsqrt"},
    {Op::sin, "sin"},
    {Op::cos, "cos"},
    {Op::floor, "floor"},
    {Op::ceil, "ceil"},
    {Op::select, "select"},
    {Op::conditional, "conditional"},
    {Op::to_floating, "to_floating"},
    {Op::to_integer, "to_integer"},
    {Op::times_2_to_32, "times_2_to_32"},
    {Op::to_unsigned, "to_unsigned"},
    {Op::to_wide_unsigned, "to_wide_unsigned"},
}};

constexpr std::array<std::pair<Type, std::string_view>, 3> kTypes = {
    {{Type::integer, "int"}, {Type::floating, "float"}, {Type::truth, "bool"}}};

bool is_truth(Op op) {
  return (op >= Op::less && op <= Op::logical_not) || op == Op::truth_literal;
}

bool is_function_of_floats(Op op) {
  return (op >= Op::tanh && op <= Op::ceil) || op == Op::to_floating || op == Op::floating_literal;
}

Type type_of(Op op, const std::vector<Expression>& operands) {
  if (is_truth(op)) return Type::truth;
  if (is_function_of_floats(op)) return Type::floating;
  if (op == Op::to_integer) return Type::integer;
  const bool chooses = op == Op::select || op == Op::conditional;
  const auto first = operands.begin() + (chooses ? 1 : 0);
  const bool any_floating = std::any_of(first, operands.end(), [](const Expression& operand) {
    return operand.type == Type::floating;
  });
  if (any_floating) return Type::floating;
  return chooses ? first->type : Type::integer;
}

// C++'s precedences, the greater the tighter.
enum Precedence : int {
  kConditional = 1,
  kOr,
  kAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPrimary,
};

struct Infix {
  Op op;
  std::string_view sign;
  int precedence;
};

constexpr std::array<Infix, 18> kInfixes = {{
    {Op::add, "+", kSum},
    {Op::subtract, "-", kSum},
    {Op::multiply, "*", kProduct},
    {Op::divide, "/", kProduct},
    {Op::remainder, "%", kProduct},
    {Op::shift_left, "<<", kShift},
    {Op::shift_right, ">>", kShift},
    {Op::bit_and, "&", kBitAnd},
    {Op::bit_or, "|", kBitOr},
    {Op::bit_xor, "^", kBitXor},
    {Op::less, "<", kRelation},
    {Op::less_equal, "<=", kRelation},
    {Op::greater, ">", kRelation},
    {Op::greater_equal, ">=", kRelation},
    {Op::equal, "==", kEquality},
    {Op::not_equal, "!=", kEquality},
    {Op::logical_and, "&&", kAnd},
    {Op::logical_or, "||", kOr},
}};

const Infix* find_infix(Op op) {
  const auto found = std::find_if(kInfixes.begin(), kInfixes.end(),
                                  [op](const Infix& infix) { return infix.op == op; });
  return found == kInfixes.end() ? nullptr : &*found;
}

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
  // Compilers warn of `a & b == c`, `a << b + c` and `a || b && c`: nobody reads those right.
  const bool is_plain = infix.precedence >= kSum || infix.precedence == kRelation;
  const int left = is_plain ? infix.precedence : kSum;
  return fmt::format("{} {} {}", operand_text(expression.operands[0], left), infix.sign,
                     operand_text(expression.operands[1], std::max(left, infix.precedence + 1)));
}

std::string indented(const std::vector<Statement>& statements, int depth);

std::string statement_text(const Statement& statement, int depth) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  switch (statement.kind) {
    case Statement::Kind::declare:
      return fmt::format("{}{} {} = {};\n", indent, to_string(statement.value.type), statement.name,
                         to_text(statement.value));
    case Statement::Kind::lambda: {
      std::vector<std::string> parameters;
      for (const Parameter& parameter : statement.parameters) {
        parameters.push_back(fmt::format("{} {}", to_string(parameter.type), parameter.name));
      }
      return fmt::format("{}auto {} = [=]({}) {{ return {}; }};\n", indent, statement.name,
                         fmt::join(parameters, ", "), to_text(statement.value));
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
  }
  return {};
}

std::string indented(const std::vector<Statement>& statements, int depth) {
  std::string text;
  for (const Statement& statement : statements) text += statement_text(statement, depth);
  return text;
}

std::size_t size_of(const Expression& expression) {
  return std::accumulate(
      expression.operands.begin(), expression.operands.end(), std::size_t{1},
      [](std::size_t sum, const Expression& operand) { return sum + size_of(operand); });
}

std::size_t size_of(const std::vector<Statement>& statements) {
  std::size_t sum = 0;
  for (const Statement& statement : statements) {
    sum += 1 + size_of(statement.value) + size_of(statement.body) + size_of(statement.otherwise);
  }
  return sum;
}

}  // namespace

std::string_view to_string(Op op) {
  return kOps[static_cast<std::size_t>(op)].second;
}

Op op_from_string(std::string_view name) {
  if (const auto op = value_in(kOps, name)) return *op;
  throw Error(ErrorCode::file, fmt::format("\"{}\" is no operation of a snippet's tree", name));
}

std::string_view to_string(Type type) {
  return kTypes[static_cast<std::size_t>(type)].second;
}

Type type_from_string(std::string_view name) {
  if (const auto type = value_in(kTypes, name)) return *type;
  throw Error(ErrorCode::file,
              fmt::format("\"{}\" is no type of a snippet's tree, write int, float or bool", name));
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

std::string to_text(const Expression& expression) {
  const std::vector<Expression>& operands = expression.operands;
  if (const Infix* infix = find_infix(expression.op)) return infix_text(expression, *infix);
  switch (expression.op) {
    case Op::integer_literal:
      return fmt::format("{}", expression.integer);
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

std::size_t size_of(const SnippetTree& tree) {
  return size_of(tree.statements);
}

}  // namespace tilewright::verify::fuzz
