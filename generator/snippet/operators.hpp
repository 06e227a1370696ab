#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::snippet {

/// The type of a value. `float` and `double` are one type: each interpretation has one floating
/// type. `unknown` is the type of an unsigned integer.
enum class Type : std::uint8_t { integer, floating, truth, wide, unknown };

/// "int", "float", "bool", "long long": in JSON and as a snippet declares it; "unknown".
std::string_view to_string(Type type);

/// C++'s precedences, the greater the tighter.
inline constexpr int kConditional = 1, kOr = 2, kAnd = 3, kBitOr = 4, kBitXor = 5, kBitAnd = 6;
inline constexpr int kEquality = 7, kRelation = 8, kShift = 9, kSum = 10, kProduct = 11;
inline constexpr int kUnary = 12, kPrimary = 13;

/// What an operation does with its operands: nothing, converts two to one type, takes integers
/// only, or converts each to the floating type.
enum class Takes : std::uint8_t { any, alike, whole, real };

/// For a result whose type follows from the operands.
inline constexpr std::nullopt_t kOfOperands = std::nullopt;

// Every operation as a row of Operation. Real functions of one number differ in their names only.
// A floating operation converts integer operands. Leaves, reads and calls have any number of
// operands, and the code that makes them sets their type. floor_div and floor_mod are Python's //
// and %. The fuzzer has the last three in indices of a buffer: their values need not be ints.
// clang-format off
#define TILEWRIGHT_REAL_FUNCTIONS(X) \
  X(tanh) X(exp) X(exp2) X(expm1) X(log) X(log2) X(log1p) X(erf) X(erfc) X(sqrt) X(rsqrt) \
  X(sin) X(cos) X(tan) X(floor) X(ceil)
// clang-format on
#define TILEWRIGHT_SNIPPET_OPERATIONS(X, REAL)                                      \
  X(integer_literal, "integer", "", kPrimary, 0, any, kOfOperands)                  \
  X(floating_literal, "floating", "", kPrimary, 0, any, kOfOperands)                \
  X(truth_literal, "truth", "", kPrimary, 0, any, kOfOperands)                      \
  X(variable, "variable", "", kPrimary, 0, any, kOfOperands)                        \
  X(read, "read", "", kPrimary, 0, any, kOfOperands)                                \
  X(size, "size", "", kPrimary, 0, any, kOfOperands)                                \
  X(call, "call", "", kPrimary, 0, any, kOfOperands)                                \
  X(add, "add", "+", kSum, 2, alike, kOfOperands)                                   \
  X(subtract, "subtract", "-", kSum, 2, alike, kOfOperands)                         \
  X(multiply, "multiply", "*", kProduct, 2, alike, kOfOperands)                     \
  X(divide, "divide", "/", kProduct, 2, alike, kOfOperands)                         \
  X(remainder, "remainder", "%", kProduct, 2, whole, kOfOperands)                   \
  X(negate, "negate", "-", kUnary, 1, any, kOfOperands)                             \
  X(shift_left, "shift_left", "<<", kShift, 2, whole, kOfOperands)                  \
  X(shift_right, "shift_right", ">>", kShift, 2, whole, kOfOperands)                \
  X(bit_and, "bit_and", "&", kBitAnd, 2, whole, kOfOperands)                        \
  X(bit_or, "bit_or", "|", kBitOr, 2, whole, kOfOperands)                           \
  X(bit_xor, "bit_xor", "^", kBitXor, 2, whole, kOfOperands)                        \
  X(less, "less", "<", kRelation, 2, alike, Type::truth)                            \
  X(less_equal, "less_equal", "<=", kRelation, 2, alike, Type::truth)               \
  X(greater, "greater", ">", kRelation, 2, alike, Type::truth)                      \
  X(greater_equal, "greater_equal", ">=", kRelation, 2, alike, Type::truth)         \
  X(equal, "equal", "==", kEquality, 2, alike, Type::truth)                         \
  X(not_equal, "not_equal", "!=", kEquality, 2, alike, Type::truth)                 \
  X(logical_and, "and", "&&", kAnd, 2, any, Type::truth)                            \
  X(logical_or, "or", "||", kOr, 2, any, Type::truth)                               \
  X(logical_not, "not", "!", kUnary, 1, any, Type::truth)                           \
  X(minimum, "min", "min", kPrimary, 2, alike, kOfOperands)                         \
  X(maximum, "max", "max", kPrimary, 2, alike, kOfOperands)                         \
  X(floor_quotient, "floor_div", "floor_div", kPrimary, 2, any, kOfOperands)        \
  X(floor_remainder, "floor_mod", "floor_mod", kPrimary, 2, any, kOfOperands)       \
  X(absolute, "abs", "abs", kPrimary, 1, any, kOfOperands)                          \
  X(sign, "sign", "sign", kPrimary, 1, any, kOfOperands)                            \
  X(clamp, "clamp", "clamp", kPrimary, 3, any, kOfOperands)                         \
  X(pow, "pow", "pow", kPrimary, 2, real, Type::floating)                           \
  TILEWRIGHT_REAL_FUNCTIONS(REAL)                                                   \
  X(select, "select", "select", kPrimary, 3, any, kOfOperands)                      \
  X(conditional, "conditional", "?", kConditional, 3, any, kOfOperands)             \
  X(to_floating, "to_floating", "float", kPrimary, 1, any, Type::floating)          \
  X(to_integer, "to_integer", "int", kPrimary, 1, any, Type::integer)               \
  X(to_truth, "to_truth", "bool", kPrimary, 1, any, Type::truth)                    \
  X(to_wide, "to_wide", "static_cast<long long>", kPrimary, 1, any, Type::wide)     \
  X(times_2_to_32, "times_2_to_32", "* 4294967296ll", kProduct, 1, any, Type::wide) \
  X(to_unsigned, "to_unsigned", "(unsigned)", kPrimary, 1, any, Type::unknown)      \
  X(to_wide_unsigned, "to_wide_unsigned", "(unsigned long long)", kPrimary, 1, any, Type::unknown)

/// What a node of an expression does with its operands.
enum class Op : std::uint8_t {
#define TILEWRIGHT_ENUMERATOR(op, ...) op,
  TILEWRIGHT_SNIPPET_OPERATIONS(TILEWRIGHT_ENUMERATOR, TILEWRIGHT_ENUMERATOR)
#undef TILEWRIGHT_ENUMERATOR
};

/// A row of the table.
struct Operation {
  Op op;
  std::string_view name;  ///< in JSON and in messages: "add", "less_equal", "variable"
  std::string_view text;  ///< in a snippet: "+", "tanh"
  int precedence;
  std::size_t operands;
  Takes takes;
  std::optional<Type> result;

  bool is_infix() const { return operands == 2 && precedence < kUnary; }
  bool is_conversion() const { return op >= Op::to_floating && op <= Op::to_wide; }
  /// By an operand that may be 0.
  bool divides() const {
    return op == Op::divide || op == Op::remainder || op == Op::floor_quotient ||
           op == Op::floor_remainder;
  }
};

/// All of them, in the order of Op.
std::span<const Operation> operations();
const Operation& operation(Op op);
std::string_view to_string(Op op);

/// The operator between two operands that a text is; null for any other text.
const Operation* find_infix(std::string_view text);
/// Names of a function: {"tanh", "tanhf"}, {"min", "fmin", "fminf"}; none of another operation.
std::vector<std::string> function_names(const Operation& operation);
/// The conversion to a type of the tree.
Op conversion_to(Type type);

}  // namespace tilewright::snippet
