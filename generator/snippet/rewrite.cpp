#include "generator/snippet/rewrite.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "generator/snippet/print.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

bool is_conversion(Op op) {
  return op >= Op::to_floating && op <= Op::to_wide;
}

// Operations that convert their operands to one type, which they have themselves.
bool converts_operands(Op op) {
  return (op >= Op::add && op <= Op::divide) || op == Op::minimum || op == Op::maximum;
}

// Whether the operation is the same without the conversion of operand i: `x * float(n)`. A float
// made of an int by way of a long long is the int's.
bool is_implied(const Expression& node, std::size_t i) {
  const Expression& operand = node.operands[i];
  const bool widens = operand.op == Op::to_wide && operand.operands[0].type == Type::integer;
  if (operand.op != Op::to_floating && !widens) return false;
  if (node.op >= Op::pow && node.op <= Op::ceil) return true;
  const bool is_arithmetic =
      converts_operands(node.op) || (node.op >= Op::less && node.op <= Op::not_equal);
  return is_arithmetic && node.operands[1 - i].type == Type::floating &&
         node.operands[1 - i].op != Op::to_floating;
}

bool is_index(const Expression& node) {
  return node.op == Op::variable && (node.name == "q_idx" || node.name == "kv_idx");
}

struct Term {
  const Expression* value;
  bool is_negative;
};

void gather_terms(const Expression& sum, bool is_negative, std::vector<Term>& terms) {
  const bool is_sum = sum.op == Op::add || sum.op == Op::subtract || sum.op == Op::negate;
  if (!is_sum || sum.type != Type::integer) return terms.push_back({&sum, is_negative});
  for (const Expression& operand : sum.operands) {
    const bool is_taken_away = sum.op != Op::add && &operand == &sum.operands.back();
    gather_terms(operand, is_negative != is_taken_away, terms);
  }
}

// `100 + kv_idx - q_idx` as `kv_idx - q_idx + 100`: kernels have a fast difference.
Expression with_difference_first(Expression sum) {
  std::vector<Term> terms;
  gather_terms(sum, false, terms);
  const auto is_here = [](const Term& term) { return is_index(*term.value); };
  const auto first = std::find_if(terms.begin(), terms.end(), is_here);
  if (std::count_if(terms.begin(), terms.end(), is_here) != 2) return sum;
  const auto second = std::find_if(first + 1, terms.end(), is_here);
  const bool cancels = first->is_negative != second->is_negative;
  if (!cancels || first->value->name == second->value->name) return sum;
  const Term& plus = first->is_negative ? *second : *first;
  const Term& minus = first->is_negative ? *first : *second;
  Expression result = apply(Op::subtract, {*plus.value, *minus.value});
  for (const Term& term : terms) {
    if (is_here(term)) continue;
    Expression value = *term.value;
    const bool is_negative_literal = value.op == Op::integer_literal && value.integer < 0;
    if (is_negative_literal) value.integer = -value.integer;
    const bool is_taken_away = term.is_negative != is_negative_literal;
    result = apply(is_taken_away ? Op::subtract : Op::add, {std::move(result), std::move(value)});
  }
  result.range = sum.range;
  return result;
}

Expression simple(Expression node) {
  if (is_conversion(node.op) && node.operands[0].type == node.type) {
    return std::move(node.operands[0]);
  }
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (is_implied(node, i)) node.operands[i] = Expression(std::move(node.operands[i].operands[0]));
  }
  const auto is_real_index = [](const Expression& operand) {
    return operand.op == Op::to_floating && is_index(operand.operands[0]);
  };
  if (node.op == Op::subtract && is_real_index(node.operands[0]) &&
      is_real_index(node.operands[1])) {
    const SourceRange range = node.range;
    node = apply(Op::subtract, {node.operands[0].operands[0], node.operands[1].operands[0]});
    node.range = range;
    return converted(std::move(node), Type::floating);
  }
  const bool is_sum = node.op == Op::add || node.op == Op::subtract;
  if (is_sum && node.type == Type::integer) node = with_difference_first(std::move(node));
  if (node.op != Op::add) return node;
  // `-q_idx + kv_idx` and `kv_idx + -q_idx`
  for (const std::size_t i : {1U, 0U}) {
    if (node.operands[i].op != Op::negate) continue;
    node.op = Op::subtract;
    node.operands = {node.operands[1 - i], node.operands[i].operands[0]};
    break;
  }
  return node;
}

// How often a name is declared and assigned.
struct Uses {
  int declared = 0;
  int assigned = 0;
  int read = 0;
};

std::map<std::string, Uses> count_uses(const std::vector<Statement>& statements) {
  std::map<std::string, Uses> uses;
  for_each_statement(statements, [&](const Statement& statement) {
    if (statement.kind == Kind::assign) ++uses[statement.name].assigned;
    if (statement.kind == Kind::declare || statement.kind == Kind::lambda) {
      ++uses[statement.name].declared;
    }
    for (const Parameter& parameter : statement.parameters) ++uses[parameter.name].assigned;
  });
  for_each_node(statements, [&](const Expression& node) {
    if (node.op == Op::variable || node.op == Op::call) ++uses[node.name].read;
  });
  return uses;
}

// All names that a snippet declares or mentions.
std::set<std::string> names_in(const std::vector<Statement>& statements) {
  std::set<std::string> names;
  for_each_statement(statements, [&](const Statement& statement) {
    names.insert(statement.name);
    for (const Parameter& parameter : statement.parameters) names.insert(parameter.name);
  });
  for_each_node(statements, [&](const Expression& node) { names.insert(node.name); });
  return names;
}

// A sequence of assignments to one local, in the list that declares it, as one local each.
void name_versions(std::vector<Statement>& statements) {
  const std::map<std::string, Uses> all = count_uses(statements);
  std::map<std::string, int> here;
  for (const Statement& statement : statements) {
    if (statement.kind == Kind::assign || statement.kind == Kind::declare) ++here[statement.name];
    if (statement.kind == Kind::lambda) return;
  }
  Locals names;
  std::map<std::string, Type> types;
  std::map<std::string, int> versions;
  std::set<std::string> taken = names_in(statements);
  for (Statement& statement : statements) {
    statement.value = inlined(statement.value, names);
    const auto rename = [&](auto& self, std::vector<Statement>& inner) -> void {
      for (Statement& one : inner) {
        one.value = inlined(one.value, names);
        self(self, one.body);
        self(self, one.otherwise);
      }
    };
    rename(rename, statement.body);
    rename(rename, statement.otherwise);
    if (statement.kind != Kind::assign && statement.kind != Kind::declare) continue;
    const Uses& uses = all.at(statement.name);
    if (uses.declared != 1 || uses.assigned + 1 != here[statement.name]) continue;
    if (statement.kind == Kind::declare) {
      types[statement.name] = statement.value.type;
      continue;
    }
    const Type type = types.at(statement.name);
    std::string version = statement.name;
    while (taken.contains(version)) {
      version = fmt::format("{}_{}", statement.name, ++versions[statement.name]);
    }
    taken.insert(version);
    statement.kind = Kind::declare;
    statement.value = converted(std::move(statement.value), type);
    names[statement.name] = variable(version, type);
    statement.name = version;
  }
}

// Nodes of a value that is put in a local's place. `b = a + a; c = b + b; ...` would double it each
// time, and compilers recurse over the operators of an expression.
constexpr std::size_t kMostInlined = 128;

// Locals that never change, those for which `wanted(uses, value)`.
template <typename Wanted>
Locals find_constants(const std::vector<Statement>& statements,
                      const std::map<std::string, Uses>& uses, const Wanted& wanted) {
  const auto changes = [&](const std::string& name) {
    const auto found = uses.find(name);
    return found != uses.end() && (found->second.assigned > 0 || found->second.declared > 1);
  };
  Locals locals;
  for_each_statement(statements, [&](const Statement& statement) {
    if (statement.kind != Kind::declare || changes(statement.name)) return;
    Expression value = inlined(statement.value, locals);
    bool is_constant = size_of(value) <= kMostInlined && wanted(uses.at(statement.name), value);
    for_each_node(value, [&](const Expression& node) {
      const bool is_lambda = node.op == Op::call && node.type != Type::unknown;
      is_constant &= !is_lambda && (node.op != Op::variable || !changes(node.name));
    });
    if (is_constant) locals.emplace(statement.name, std::move(value));
  });
  return locals;
}

// From the end, so that what only a dropped local uses is dropped too.
void drop_unused(std::vector<Statement>& statements, std::map<std::string, Uses>& uses) {
  for (std::size_t i = statements.size(); i-- > 0;) {
    Statement& statement = statements[i];
    drop_unused(statement.otherwise, uses);
    drop_unused(statement.body, uses);
    const bool declares = statement.kind == Kind::declare || statement.kind == Kind::lambda;
    const Uses& use = uses[statement.name];
    if (!declares || use.read > 0 || use.assigned > 0) continue;
    for_each_node(statement.value, [&](const Expression& node) {
      if (node.op == Op::variable || node.op == Op::call) --uses[node.name].read;
    });
    statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void drop_unused(std::vector<Statement>& statements) {
  std::map<std::string, Uses> uses = count_uses(statements);
  drop_unused(statements, uses);
}

// Puts blocks' statements in their places, unless that would declare a name twice.
void flatten_blocks(std::vector<Statement>& statements, const std::map<std::string, Uses>& uses) {
  std::vector<Statement> flat;
  for (Statement& statement : statements) {
    flatten_blocks(statement.body, uses);
    flatten_blocks(statement.otherwise, uses);
    const auto declares_anew = [&](const Statement& inner) {
      const auto found = uses.find(inner.name);
      return found != uses.end() && found->second.declared > 1;
    };
    const bool stays = statement.kind != Kind::block ||
                       std::any_of(statement.body.begin(), statement.body.end(), declares_anew);
    if (stays) {
      flat.push_back(std::move(statement));
    } else {
      std::move(statement.body.begin(), statement.body.end(), std::back_inserter(flat));
    }
  }
  statements = std::move(flat);
}

void inline_locals(std::vector<Statement>& statements, const Locals& locals) {
  for (Statement& statement : statements) {
    statement.value = inlined(statement.value, locals);
    statement.deduces_type = false;  // it is printed with its type
    inline_locals(statement.body, locals);
    inline_locals(statement.otherwise, locals);
  }
}

int order_of(const Expression& node) {
  const bool is_literal = node.op <= Op::truth_literal;
  return is_literal ? 0 : node.op == Op::variable ? 1 : 2;
}

bool comes_after(const Expression& a, const Expression& b) {
  if (order_of(a) != order_of(b)) return order_of(a) > order_of(b);
  return to_text(a) > to_text(b);
}

Expression negated(Expression value) {
  if (value.op == Op::negate) return std::move(value.operands[0]);
  if (value.op == Op::integer_literal) value.integer = -value.integer;
  if (value.op == Op::floating_literal) value.number = -value.number;
  if (value.op == Op::integer_literal || value.op == Op::floating_literal) return value;
  if (value.op == Op::add && value.type == Type::integer) {
    for (Expression& operand : value.operands) operand = negated(std::move(operand));
    if (comes_after(value.operands[0], value.operands[1])) {
      std::swap(value.operands[0], value.operands[1]);
    }
    return value;
  }
  const SourceRange range = value.range;
  Expression result = apply(Op::negate, {std::move(value)});
  result.range = range;
  return result;
}

}  // namespace

void for_each_node(const Expression& expression,
                   const std::function<void(const Expression&)>& visit) {
  visit(expression);
  for (const Expression& operand : expression.operands) for_each_node(operand, visit);
}

void for_each_statement(const std::vector<Statement>& statements,
                        const std::function<void(const Statement&)>& visit) {
  for (const Statement& statement : statements) {
    visit(statement);
    for_each_statement(statement.body, visit);
    for_each_statement(statement.otherwise, visit);
  }
}

void for_each_node(const std::vector<Statement>& statements,
                   const std::function<void(const Expression&)>& visit) {
  for_each_statement(statements,
                     [&](const Statement& statement) { for_each_node(statement.value, visit); });
}

bool mentions(const SnippetTree& tree, const std::string& name) {
  bool found = false;
  for_each_node(tree.statements, [&](const Expression& node) { found |= node.name == name; });
  return found;
}

Expression inlined(const Expression& expression, const Locals& locals) {
  if (expression.op == Op::variable) {
    const auto found = locals.find(expression.name);
    if (found == locals.end()) return expression;
    Expression value = found->second;
    value.range = expression.range;
    return value;
  }
  Expression node = expression;
  for (Expression& operand : node.operands) operand = inlined(operand, locals);
  return simple(std::move(node));
}

Locals constant_locals(const SnippetTree& tree) {
  return find_constants(tree.statements, count_uses(tree.statements),
                        [](const Uses&, const Expression&) { return true; });
}

Expression normal(const Expression& expression) {
  Expression node = expression;
  for (Expression& operand : node.operands) operand = normal(operand);
  node = simple(std::move(node));
  const bool is_product = node.op == Op::multiply || node.op == Op::divide;
  if (node.type == Type::floating && converts_operands(node.op)) {
    for (Expression& operand : node.operands) {
      if (operand.op != Op::integer_literal) continue;
      const SourceRange range = operand.range;
      operand = floating(static_cast<double>(operand.integer));
      operand.range = range;
    }
  }
  if (node.op == Op::negate) return negated(std::move(node.operands[0]));
  if (node.op == Op::subtract) {
    node.op = Op::add;
    node.operands[1] = negated(std::move(node.operands[1]));
  }
  bool is_negative = false;
  for (Expression& operand : node.operands) {
    if (!is_product || operand.op != Op::negate) continue;
    is_negative = !is_negative;
    operand = Expression(std::move(operand.operands[0]));
  }
  const bool commutes = node.op == Op::add || node.op == Op::multiply;
  if (commutes && comes_after(node.operands[0], node.operands[1])) {
    std::swap(node.operands[0], node.operands[1]);
  }
  return is_negative ? negated(std::move(node)) : node;
}

SnippetTree simplified(const SnippetTree& tree) {
  SnippetTree result = tree;
  if (opaque(tree) != nullptr) return result;
  flatten_blocks(result.statements, count_uses(result.statements));
  name_versions(result.statements);
  drop_unused(result.statements);
  const auto is_wanted = [](const Uses& uses, const Expression& value) {
    return uses.read <= 1 || value.operands.empty() ||
           (is_conversion(value.op) && value.operands[0].operands.empty());
  };
  inline_locals(result.statements,
                find_constants(result.statements, count_uses(result.statements), is_wanted));
  drop_unused(result.statements);
  return result;
}

}  // namespace tilewright::snippet
