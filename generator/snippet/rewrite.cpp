#include "generator/snippet/rewrite.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

bool is_index(const Expression& node) {
  return node.is_variable("q_idx") || node.is_variable("kv_idx");
}

// ---- rules, each for one node whose operands are simple

void drop_conversion(Expression& node) {
  const bool is_same = operation(node.op).is_conversion() && node.operands[0].type == node.type;
  if (is_same) node = Expression(std::move(node.operands[0]));
}

// Whether the operation is the same without the conversion of operand i: `x * float(n)`. A float
// made of an int by way of a long long is the int's.
bool is_implied(const Expression& node, std::size_t i) {
  const Expression& operand = node.operands[i];
  const bool widens = operand.op == Op::to_wide && operand.operands[0].type == Type::integer;
  if (operand.op != Op::to_floating && !widens) return false;
  const Takes takes = operation(node.op).takes;
  if (takes != Takes::alike) return takes == Takes::real;
  const Expression& other = node.operands[1 - i];
  return other.type == Type::floating && other.op != Op::to_floating;
}

void drop_implied_conversions(Expression& node) {
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    Expression& operand = node.operands[i];
    if (is_implied(node, i)) operand = Expression(std::move(operand.operands[0]));
  }
}

// `float(kv_idx) - float(q_idx)` as `float(kv_idx - q_idx)`
void subtract_indices_as_integers(Expression& node) {
  if (node.op != Op::subtract) return;
  for (const Expression& operand : node.operands) {
    if (operand.op != Op::to_floating || !is_index(operand.operands[0])) return;
  }
  for (Expression& operand : node.operands) operand = Expression(std::move(operand.operands[0]));
  node = converted(apply(Op::subtract, std::move(node.operands)), Type::floating);
}

struct Term {
  const Expression* value;
  bool is_negative;
};

std::vector<Term> terms_of(const Expression& sum) {
  std::vector<Term> terms;
  const auto gather = [&](const auto& self, const Expression& node, bool is_negative) -> void {
    const bool is_sum = node.op == Op::add || node.op == Op::subtract || node.op == Op::negate;
    if (!is_sum || node.type != Type::integer) return terms.push_back({&node, is_negative});
    for (const Expression& operand : node.operands) {
      const bool is_taken_away = node.op != Op::add && &operand == &node.operands.back();
      self(self, operand, is_negative != is_taken_away);
    }
  };
  gather(gather, sum, false);
  return terms;
}

// `100 + kv_idx - q_idx` as `kv_idx - q_idx + 100`: kernels have a fast difference.
void put_difference_first(Expression& node) {
  if (node.type != Type::integer || (node.op != Op::add && node.op != Op::subtract)) return;
  std::vector<Term> terms = terms_of(node);
  const auto rank = [](const Term& term) {
    return !is_index(*term.value) ? 2 : term.is_negative ? 1 : 0;
  };
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const Term& a, const Term& b) { return rank(a) < rank(b); });
  const bool has_difference =
      rank(terms[0]) == 0 && rank(terms[1]) == 1 && terms[0].value->name != terms[1].value->name;
  if (!has_difference || (terms.size() > 2 && rank(terms[2]) != 2)) return;
  Expression sum = *terms[0].value;
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Expression value = *terms[i].value;
    const bool is_taken_away = terms[i].is_negative != (value.integer < 0);
    value.integer = std::abs(value.integer);
    sum = apply(is_taken_away ? Op::subtract : Op::add, {std::move(sum), std::move(value)});
  }
  node = std::move(sum);
}

constexpr std::array kRules = {drop_conversion, drop_implied_conversions,
                               subtract_indices_as_integers, put_difference_first};

// Nodes of a value that is put in a local's place. `b = a + a; c = b + b; ...` would double it each
// time, and compilers recurse over the operators of an expression.
constexpr std::size_t kMostInlined = 128;

// From the end, so that what only a dropped local uses is dropped too. `mentions` counts what
// stays.
void drop_unused(std::vector<Statement>& statements, std::map<std::string, int>& mentions) {
  for (std::size_t i = statements.size(); i-- > 0;) {
    Statement& statement = statements[i];
    const bool declares = statement.kind == Kind::declare || statement.kind == Kind::lambda;
    if (declares && mentions[statement.name] == 0) {
      statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    drop_unused(statement.otherwise, mentions);
    drop_unused(statement.body, mentions);
    if (statement.kind == Kind::assign) ++mentions[statement.name];
    for_each_node(statement.value, [&](const Expression& node) { ++mentions[node.name]; });
  }
}

bool is_leaf(const Expression& node) {
  return node.operands.empty() ||
         (operation(node.op).is_conversion() && node.operands[0].operands.empty());
}

}  // namespace

int sign_of_difference(const Expression& node) {
  if (node.op != Op::subtract) return 0;
  const Expression& a = node.operands[0];
  const Expression& b = node.operands[1];
  if (a.is_variable("kv_idx") && b.is_variable("q_idx")) return 1;
  return a.is_variable("q_idx") && b.is_variable("kv_idx") ? -1 : 0;
}

std::set<std::string> changing_names(const std::vector<Statement>& statements) {
  std::set<std::string> names;
  for_each_statement(statements, [&](const Statement& statement) {
    if (statement.kind == Kind::assign) names.insert(statement.name);
    for (const Expression& parameter : statement.parameters) names.insert(parameter.name);
  });
  return names;
}

Locals constant_locals(const std::vector<Statement>& statements, const LocalTest& is_wanted) {
  const std::set<std::string> changing = changing_names(statements);
  const auto changes = [&](const Expression& node) {
    return node.op == Op::call || changing.contains(node.name);
  };
  Locals locals;
  for_each_statement(statements, [&](const Statement& statement) {
    if (statement.kind != Kind::declare || changing.contains(statement.name)) return;
    Expression value = inlined(statement.value, locals);
    const bool is_constant = size_of(value) <= kMostInlined && !has_node(value, changes);
    if (is_constant && is_wanted(statement.name, value)) locals[statement.name] = std::move(value);
  });
  return locals;
}

Expression inlined(Expression expression, const Locals& locals) {
  transform(expression, [&](Expression& node) {
    const auto local = node.op == Op::variable ? locals.find(node.name) : locals.end();
    if (local != locals.end()) {
      node = local->second;
      return;
    }
    for (const auto& rule : kRules) rule(node);
  });
  return expression;
}

SnippetTree simplified(SnippetTree tree) {
  std::map<std::string, int> mentions;
  drop_unused(tree.statements, mentions);
  const Locals locals =
      constant_locals(tree.statements, [&](const std::string& name, const Expression& value) {
        return mentions.at(name) == 1 || is_leaf(value);
      });
  for_each_statement(tree.statements, [&](Statement& statement) {
    statement.value = inlined(std::move(statement.value), locals);
    statement.deduces_type = false;  // it is printed with its type
  });
  mentions.clear();
  drop_unused(tree.statements, mentions);
  return tree;
}

}  // namespace tilewright::snippet
