#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "operators.hpp"
#include "snippet.hpp"

namespace tilewright::snippet {

// The typed syntax tree of a snippet: parse.hpp makes it from a user's text, the fuzzer makes
// random ones, facts.hpp reads it, and the fuzzer's interpreter evaluates it. Every tree prints as
// text that a spec takes (print.hpp), unless it holds an opaque statement.

/// Bytes [begin, end) of the user's text, without brackets around them. Trees that differ in ranges
/// alone are equal.
struct SourceRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const SourceRange&, const SourceRange&) { return true; }
};

struct Expression {
  Op op = Op::integer_literal;
  Type type = Type::integer;
  std::int64_t integer = 0;  ///< value of a whole literal or a truth; of Op::size the dimension
  double number = 0;         ///< value of a floating literal
  std::string name = {};     ///< of a variable, a buffer or a lambda
  std::vector<Expression> operands = {};  ///< of a read the indices, which may be floating
  SourceRange range = {};

  bool is_variable(std::string_view wanted) const { return op == Op::variable && name == wanted; }
  friend bool operator==(const Expression& one, const Expression& other);  ///< NAN is NAN
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

struct Statement {
  enum class Kind : std::uint8_t {
    declare,  ///< `type name = value;`, and an assignment that always follows, with a new name
    lambda,   ///< `auto name = [=](parameters) { return value; };`
    assign,   ///< `name = value;`, as `name += x;` and `++name;` are, in a branch or a loop
    branch,   ///< `if (value) { body } else { otherwise }`
    result,   ///< `return value;`
    loop,     ///< `while (value) { body }`; a `for` is a declaration before one
    leave,    ///< `break;`
    opaque,   ///< the whole snippet: `name` says why its text has no tree, value.range where
  };

  Kind kind = Kind::result;
  std::string name = {};
  Expression value = {};
  std::vector<Expression> parameters = {};  ///< of a lambda: variables
  std::vector<Statement> body = {};         ///< of a branch or a loop
  std::vector<Statement> otherwise = {};    ///< of a branch; empty: no else
  bool deduces_type = false;                ///< of a declaration: `auto`
  bool captures_references = false;         ///< of a lambda: `[&]`

  friend bool operator==(const Statement&, const Statement&) = default;
};

/// A whole snippet. Its last statement is a result, or it is one opaque statement. No two
/// declarations have one name.
struct SnippetTree {
  SnippetKind kind = SnippetKind::score_mod;
  std::vector<Statement> statements = {};
  bool has_loop_words = false;  ///< a `for` or `while` in the text of an opaque snippet

  friend bool operator==(const SnippetTree&, const SnippetTree&) = default;
};

/// The opaque statement of a tree; null if the tree says all that the snippet does.
const Statement* opaque(const SnippetTree& tree);

/// Calls `visit` for each statement, and then for those inside it. Trees of these walks may be
/// const or not.
template <typename Visit>
void for_each_statement(auto& statements, const Visit& visit) {
  for (auto& statement : statements) {
    visit(statement);
    for_each_statement(statement.body, visit);
    for_each_statement(statement.otherwise, visit);
  }
}

/// Calls `visit` for a node, which it may replace, and then for all below it; or for all nodes of
/// statements.
template <typename Visit>
void for_each_node(auto& tree, const Visit& visit) {
  if constexpr (requires { tree.operands; }) {
    visit(tree);
    for (auto& operand : tree.operands) for_each_node(operand, visit);
  } else {
    for_each_statement(tree, [&](auto& one) { for_each_node(one.value, visit); });
  }
}

/// Calls `change` for a node after all below it.
template <typename Change>
void transform(Expression& node, const Change& change) {
  for (Expression& operand : node.operands) transform(operand, change);
  change(node);
}

template <typename Test>
bool has_node(const auto& tree, const Test& test) {
  bool found = false;
  for_each_node(tree, [&](const Expression& node) { found |= test(node); });
  return found;
}

/// How many nodes an expression has.
std::size_t size_of(const Expression& expression);

}  // namespace tilewright::snippet
