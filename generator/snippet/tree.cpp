#include "generator/snippet/tree.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/enum_names.hpp"
#include "base/error.hpp"
#include "generator/snippet/operators.hpp"

namespace tilewright::snippet {
namespace {

constexpr std::array<std::pair<Op, std::string_view>, 60> kOps = {{
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
    {Op::pow, "pow"},
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
    {Op::tan, "tan"},
    {Op::floor, "floor"},
    {Op::ceil, "ceil"},
    {Op::select, "select"},
    {Op::conditional, "conditional"},
    {Op::to_floating, "to_floating"},
    {Op::to_integer, "to_integer"},
    {Op::to_truth, "to_truth"},
    {Op::to_wide, "to_wide"},
    {Op::times_2_to_32, "times_2_to_32"},
    {Op::to_unsigned, "to_unsigned"},
    {Op::to_wide_unsigned, "to_wide_unsigned"},
}};

constexpr std::array<std::pair<Type, std::string_view>, 5> kTypes = {{{Type::integer, "int"},
                                                                      {Type::floating, "float"},
                                                                      {Type::truth, "bool"},
                                                                      {Type::wide, "long long"},
                                                                      {Type::unknown, "unknown"}}};

constexpr std::array<Infix, 18> kInfixes = {{
    {Op::add, "+", "", kSum},
    {Op::subtract, "-", "", kSum},
    {Op::multiply, "*", "", kProduct},
    {Op::divide, "/", "", kProduct},
    {Op::remainder, "%", "", kProduct},
    {Op::shift_left, "<<", "", kShift},
    {Op::shift_right, ">>", "", kShift},
    {Op::bit_and, "&", "bitand", kBitAnd},
    {Op::bit_or, "|", "bitor", kBitOr},
    {Op::bit_xor, "^", "xor", kBitXor},
    {Op::less, "<", "", kRelation},
    {Op::less_equal, "<=", "", kRelation},
    {Op::greater, ">", "", kRelation},
    {Op::greater_equal, ">=", "", kRelation},
    {Op::equal, "==", "", kEquality},
    {Op::not_equal, "!=", "not_eq", kEquality},
    {Op::logical_and, "&&", "and", kAnd},
    {Op::logical_or, "||", "or", kOr},
}};

bool is_truth(Op op) {
  return (op >= Op::less && op <= Op::logical_not) || op == Op::truth_literal || op == Op::to_truth;
}

bool is_function_of_floats(Op op) {
  return (op >= Op::pow && op <= Op::ceil) || op == Op::to_floating || op == Op::floating_literal;
}

// C++'s usual conversions: of truths to int, of int to long long, of either to the floating type.
Type common_type(const Expression* first, const Expression* end) {
  const auto has = [&](Type type) {
    return std::any_of(first, end, [type](const Expression& x) { return x.type == type; });
  };
  if (has(Type::unknown)) return Type::unknown;
  if (has(Type::floating)) return Type::floating;
  return has(Type::wide) ? Type::wide : Type::integer;
}

Type type_of(Op op, const std::vector<Expression>& operands) {
  if (is_truth(op)) return Type::truth;
  if (is_function_of_floats(op)) return Type::floating;
  if (op == Op::to_integer) return Type::integer;
  if (op == Op::to_wide || op == Op::times_2_to_32) return Type::wide;
  if (op == Op::to_unsigned || op == Op::to_wide_unsigned) return Type::unknown;
  const Expression* const end = operands.data() + operands.size();
  const bool chooses = op == Op::select || op == Op::conditional;
  if (chooses && operands[1].type == operands[2].type) return operands[1].type;
  const bool shifts = op == Op::shift_left || op == Op::shift_right;
  return common_type(operands.data() + (chooses ? 1 : 0), shifts ? operands.data() + 1 : end);
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

Expression converted(Expression value, Type type) {
  if (value.type == type) return value;
  const SourceRange range = value.range;
  const Op op = type == Type::floating  ? Op::to_floating
                : type == Type::integer ? Op::to_integer
                : type == Type::truth   ? Op::to_truth
                                        : Op::to_wide;
  Expression result = apply(op, {std::move(value)});
  result.range = range;
  return result;
}

const Statement* opaque(const SnippetTree& tree) {
  const bool is_opaque =
      !tree.statements.empty() && tree.statements[0].kind == Statement::Kind::opaque;
  return is_opaque ? &tree.statements[0] : nullptr;
}

const Infix* find_infix(Op op) {
  const auto found = std::find_if(kInfixes.begin(), kInfixes.end(),
                                  [op](const Infix& infix) { return infix.op == op; });
  return found == kInfixes.end() ? nullptr : &*found;
}

const Infix* find_infix(std::string_view text) {
  const auto found = std::find_if(kInfixes.begin(), kInfixes.end(), [text](const Infix& infix) {
    return infix.sign == text || (!infix.word.empty() && infix.word == text);
  });
  return found == kInfixes.end() ? nullptr : &*found;
}

}  // namespace tilewright::snippet
