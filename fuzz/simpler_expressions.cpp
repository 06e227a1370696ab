#include "fuzz/simpler_expressions.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "fuzz/simpler.hpp"
#include "generator/snippet/rewrite.hpp"

namespace tilewright::verify::fuzz {
namespace {

using snippet::changing_names;

// 0 and 1 of a type; a 1 becomes a 0, a 0 nothing.
std::vector<Expression> literals_below(const Expression& expression) {
  std::vector<Expression> literals;
  switch (expression.type) {
    case Type::integer:
      literals = {integer(0), integer(1)};
      break;
    case Type::floating:
      literals = {floating(0), floating(1)};
      break;
    case Type::wide:
    case Type::unknown:
      break;
    case Type::truth:
      literals = {truth(false), truth(true)};
      break;
  }
  const auto same = std::find(literals.begin(), literals.end(), expression);
  literals.erase(same, literals.end());
  return literals;
}

// Local names that a list of statements uses, and those that are declared nowhere before.
class Scope {
 public:
  explicit Scope(std::set<std::string> locals) : locals_(std::move(locals)) {}

  bool holds(const std::vector<Statement>& statements, std::set<std::string> declared) const {
    for (const Statement& statement : statements) {
      std::set<std::string> inside = declared;
      for (const Expression& parameter : statement.parameters) inside.insert(parameter.name);
      if (!holds(statement.value, inside)) return false;
      const bool assigns = statement.kind == Statement::Kind::assign;
      if (assigns && !declared.contains(statement.name)) return false;
      if (!holds(statement.body, declared) || !holds(statement.otherwise, declared)) return false;
      declared.insert(statement.name);
    }
    return true;
  }

  bool holds(const Expression& expression, const std::set<std::string>& declared) const {
    return !has_node(expression, [&](const Expression& node) {
      return locals_.contains(node.name) && !declared.contains(node.name);
    });
  }

 private:
  std::set<std::string> locals_;
};

std::set<std::string> locals_of(const std::vector<Statement>& statements) {
  std::set<std::string> locals;
  for_each_statement(statements, [&](const Statement& statement) {
    const bool declares =
        statement.kind == Statement::Kind::declare || statement.kind == Statement::Kind::lambda;
    if (declares) locals.insert(statement.name);
    for (const Expression& parameter : statement.parameters) locals.insert(parameter.name);
  });
  return locals;
}

// The list with a local variable's value in its place, and without its declaration; nothing where
// it changes.
std::vector<Statement> with_inlined(const std::vector<Statement>& statements, std::size_t i) {
  const Statement& declared = statements[i];
  if (changing_names(statements).contains(declared.name)) return {};
  std::vector<Statement> list = statements;
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  for_each_node(list, [&](Expression& node) {
    if (node.is_variable(declared.name)) node = declared.value;
  });
  return list;
}

// Lists of statements that are one step simpler.
std::vector<std::vector<Statement>> simpler_lists(const std::vector<Statement>& statements) {
  std::vector<std::vector<Statement>> lists;
  const auto with = [&](std::size_t i, const std::vector<Statement>& instead) {
    std::vector<Statement> list(statements.begin(),
                                statements.begin() + static_cast<std::ptrdiff_t>(i));
    list.insert(list.end(), instead.begin(), instead.end());
    list.insert(list.end(), statements.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                statements.end());
    lists.push_back(std::move(list));
  };
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const Statement& statement = statements[i];
    if (i + 1 < statements.size()) with(i, {});
    if (statement.kind == Statement::Kind::declare) {
      std::vector<Statement> inlined = with_inlined(statements, i);
      if (!inlined.empty()) lists.push_back(std::move(inlined));
    }
    if (statement.kind == Statement::Kind::branch) {
      with(i, statement.body);
      if (!statement.otherwise.empty()) {
        with(i, statement.otherwise);
        Statement shorter = statement;
        shorter.otherwise.clear();
        with(i, {shorter});
      }
    }
  }
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const Statement& statement = statements[i];
    for (Expression& value : simpler_expressions(statement.value)) {
      Statement simpler = statement;
      simpler.value = std::move(value);
      with(i, {simpler});
    }
    for (std::vector<Statement>& body : simpler_lists(statement.body)) {
      Statement simpler = statement;
      simpler.body = std::move(body);
      with(i, {simpler});
    }
    for (std::vector<Statement>& otherwise : simpler_lists(statement.otherwise)) {
      Statement simpler = statement;
      simpler.otherwise = std::move(otherwise);
      with(i, {simpler});
    }
  }
  return lists;
}

}  // namespace

std::vector<Expression> simpler_expressions(const Expression& expression) {
  std::vector<Expression> simpler = literals_below(expression);
  for (const Expression& operand : expression.operands) {
    if (operand.type == expression.type) simpler.push_back(operand);
  }
  for (std::size_t i = 0; i < expression.operands.size(); ++i) {
    for (Expression& operand : simpler_expressions(expression.operands[i])) {
      Expression changed = expression;
      changed.operands[i] = std::move(operand);
      simpler.push_back(std::move(changed));
    }
  }
  return simpler;
}

bool uses_only_what_it_declares(const SnippetTree& simpler, const SnippetTree& original) {
  if (simpler.statements.empty()) return false;
  if (simpler.statements.back().kind != Statement::Kind::result) return false;
  return Scope(locals_of(original.statements)).holds(simpler.statements, {});
}

std::vector<SnippetTree> simpler_trees(const SnippetTree& tree) {
  std::vector<SnippetTree> trees;
  for (std::vector<Statement>& statements : simpler_lists(tree.statements)) {
    SnippetTree simpler{tree.kind, std::move(statements)};
    if (uses_only_what_it_declares(simpler, tree)) trees.push_back(std::move(simpler));
  }
  return trees;
}

}  // namespace tilewright::verify::fuzz
