#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "snippet.hpp"

namespace tilewright::snippet {

// The typed syntax tree of a snippet: parse.hpp makes it from a user's text, the fuzzer makes
// random ones, facts.hpp reads it, and the fuzzer's interpreter evaluates it. Every tree prints as
// text that a spec takes (print.hpp), unless it holds an opaque statement.

/// The type of a value. `float` and `double` are one type: each reading has one floating type.
/// `unknown` is the result of a function that the tree has no operation for.
enum class Type : std::uint8_t { integer, floating, truth, wide, unknown };

/// Bytes [begin, end) of the user's text, without brackets around them. Trees that differ in ranges
/// alone are equal.
struct SourceRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const SourceRange&, const SourceRange&) { return true; }
};

/// What a node of an expression does with its operands. A floating operation takes integer operands
/// too, which are converted, as long as one operand is floating.
enum class Op : std::uint8_t {
  integer_literal,   ///< Expression::integer
  floating_literal,  ///< Expression::number
  truth_literal,     ///< Expression::integer, 0 or 1
  variable,          ///< an index, a length, score, a scalar, a local variable or a parameter
  read,  ///< buffer `name` at the operands, which may be floating; clamped to its extents
  size,  ///< `name.size(d)`: the extent of dimension Expression::integer
  call,  ///< the lambda, or another function, `name` of the operands

  add,
  subtract,
  multiply,
  divide,
  remainder,  ///< of integers, with the sign of the first operand
  negate,
  shift_left,   ///< of integers
  shift_right,  ///< of integers, arithmetic
  bit_and,      ///< of integers
  bit_or,       ///< of integers
  bit_xor,      ///< of integers
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  logical_and,  ///< evaluates its second operand only where the first is true
  logical_or,   ///< evaluates its second operand only where the first is false
  logical_not,

  minimum,
  maximum,
  floor_quotient,   ///< `floor_div(a, b)`, Python's //
  floor_remainder,  ///< `floor_mod(a, b)`, Python's %
  absolute,
  sign,
  clamp,  ///< value, least, greatest
  pow,
  tanh,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  erf,
  erfc,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  floor,
  ceil,
  select,       ///< `select(condition, a, b)`, which evaluates both
  conditional,  ///< `condition ? a : b`
  to_floating,  ///< `float(x)`
  to_integer,   ///< `int(x)`
  to_truth,     ///< `bool(x)`
  to_wide,      ///< `static_cast<long long>(x)`

  // Their values need not be ints. The fuzzer has them in indices of a buffer only.
  times_2_to_32,     ///< `x * 4294967296ll`
  to_unsigned,       ///< `(unsigned)(x)`
  to_wide_unsigned,  ///< `(unsigned long long)(x)`; the interpreter takes the greatest i64 for more
};

/// The operation's name in JSON and in messages: "add", "less_equal", "variable".
std::string_view to_string(Op op);
/// @throws Error with code file for a name that is none
Op op_from_string(std::string_view name);

/// "int", "float", "bool", "long long": in JSON and as a snippet declares it; "unknown".
std::string_view to_string(Type type);
/// @throws Error with code file for a name that is none
Type type_from_string(std::string_view name);

struct Expression {
  Op op = Op::integer_literal;
  Type type = Type::integer;
  std::int64_t integer = 0;  ///< a literal's value; of Op::size the dimension
  double number = 0;         ///< a floating literal's value
  std::string name = {};     ///< of a variable, a buffer or a lambda
  std::vector<Expression> operands = {};
  SourceRange range = {};

  friend bool operator==(const Expression&, const Expression&) = default;
};

/// Leaves and nodes, for code that builds trees by hand.
Expression integer(std::int64_t value);
Expression floating(double value);
Expression truth(bool value);
Expression variable(std::string name, Type type = Type::integer);
Expression read(std::string buffer, Type type, std::vector<Expression> indices);
/// The type follows from the operation and its operands.
Expression apply(Op op, std::vector<Expression> operands);
/// The value as a variable of that type takes it.
Expression converted(Expression value, Type type);

/// A parameter of a lambda.
struct Parameter {
  std::string name;
  Type type = Type::integer;

  friend bool operator==(const Parameter&, const Parameter&) = default;
};

struct Statement {
  enum class Kind : std::uint8_t {
    declare,  ///< `type name = value;`
    lambda,   ///< `auto name = [=](parameters) { return value; };`
    assign,   ///< `name = value;`, as `name += x;` and `++name;` are too
    branch,   ///< `if (value) { body } else { otherwise }`
    result,   ///< `return value;`
    block,    ///< `{ body }`
    loop,     ///< `while (value) { body }`; a `for` is a block around one
    opaque,   ///< the whole snippet: `name` says why its text has no tree, `range` where
  };

  Kind kind = Kind::result;
  std::string name = {};
  Expression value = {};
  std::vector<Parameter> parameters = {};  ///< of a lambda
  std::vector<Statement> body = {};        ///< of a branch
  std::vector<Statement> otherwise = {};   ///< of a branch; empty: no else
  bool deduces_type = false;               ///< of a declaration: `auto`
  bool captures_references = false;        ///< of a lambda: `[&]`
  SourceRange range = {};                  ///< of what an opaque statement stands for

  friend bool operator==(const Statement&, const Statement&) = default;
};

/// A whole snippet. Its last statement is a result, or it is one opaque statement.
struct SnippetTree {
  SnippetKind kind = SnippetKind::score_mod;
  std::vector<Statement> statements = {};
  bool has_loop_words = false;  ///< a `for` or `while` in the text of an opaque snippet

  friend bool operator==(const SnippetTree&, const SnippetTree&) = default;
};

/// The opaque statement of a tree; null if the tree says all that the snippet does.
const Statement* opaque(const SnippetTree& tree);

}  // namespace tilewright::snippet
