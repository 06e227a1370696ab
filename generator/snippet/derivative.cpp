#include "generator/snippet/derivative.hpp"

#include <algorithm>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "generator/snippet/derivative_rules.hpp"
#include "generator/snippet/rewrite.hpp"
#include "generator/snippet/snippet.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;
using Statements = std::vector<Statement>;

std::string output_name(std::size_t slot) {
  return fmt::format("{}[{}]", kDerivativeName, slot);
}

class Differentiator {
 public:
  Differentiator(const SnippetTree& tree, const DerivativeWish& wish)
      : tree_(tree), wish_(wish), changing_(changing_names(tree.statements)) {}

  std::optional<Derivative> run() {
    if (opaque(tree_) != nullptr || !add_slots()) return std::nullopt;
    find_active_names();
    result_.constants.resize(result_.slots.size());
    result_.statements = lowered(tree_.statements);
    if (active_.contains("score")) begin_with_slopes_of_score();
    return std::move(result_);
  }

 private:
  // ---- what depends on what

  bool is_wanted_read(const Expression& node) const {
    return node.op == Op::read && node.type == Type::floating && wish_.names.contains(node.name);
  }

  bool add_slots() {
    if (wish_.by_score) result_.slots.push_back({});
    for (const std::string& name : wish_.names) {
      const auto is_scalar = [&](const Expression& node) { return node.is_variable(name); };
      if (!has_node(tree_.statements, is_scalar)) continue;
      result_.slots.push_back({.kind = DerivativeSlot::Kind::scalar, .name = name});
    }
    const Locals locals = constant_locals(tree_.statements);
    bool understood = true;
    for_each_statement(tree_.statements, [&](const Statement& statement) {
      understood &= statement.kind != Kind::lambda;
      const auto is_read = [&](const Expression& node) { return is_wanted_read(node); };
      if (statement.kind == Kind::loop) {
        understood &= !has_node(statement.value, is_read) && !has_node(statement.body, is_read);
      }
    });
    for_each_node(tree_.statements, [&](const Expression& node) {
      if (!is_wanted_read(node)) return;
      DerivativeSlot slot{.kind = DerivativeSlot::Kind::read, .name = node.name};
      for (const Expression& operand : node.operands) {
        slot.indices.push_back(inlined(operand, locals));
        understood &= !has_node(slot.indices.back(), [&](const Expression& index) {
          return index.op == Op::variable && !stays_as_it_is(index.name);
        });
      }
      result_.slots.push_back(std::move(slot));
    });
    return understood;
  }

  // Whether a variable has its value at the end of the snippet too. Locals are inlined.
  bool stays_as_it_is(const std::string& name) const {
    bool is_local = false;
    for_each_statement(tree_.statements, [&](const Statement& statement) {
      is_local |= statement.kind == Kind::declare && statement.name == name;
    });
    return !is_local && !changing_.contains(name);
  }

  bool is_active(const Expression& node) const {
    if (node.type != Type::floating || has_no_slope(node.op)) return false;
    if (is_wanted_read(node)) return true;
    if (node.op == Op::read) return false;
    if (node.op == Op::variable) {
      return (wish_.by_score && node.name == "score") || wish_.names.contains(node.name) ||
             active_.contains(node.name);
    }
    return std::any_of(node.operands.begin(), node.operands.end(),
                       [&](const Expression& operand) { return is_active(operand); });
  }

  void find_active_names() {
    std::size_t known = 0;
    do {
      known = active_.size();
      for_each_statement(tree_.statements, [&](const Statement& statement) {
        const bool sets = statement.kind == Kind::declare || statement.kind == Kind::assign;
        if (sets && is_active(statement.value)) active_.insert(statement.name);
      });
    } while (active_.size() != known);
  }

  // ---- statements

  // A branch or a loop assigns to it.
  void begin_with_slopes_of_score() {
    Statements first;
    for (std::size_t slot = 0; slot < result_.slots.size(); ++slot) {
      const bool is_own = result_.slots[slot].kind == DerivativeSlot::Kind::score;
      first.push_back({.kind = Kind::declare,
                       .name = slope_name("score", slot),
                       .value = floating(is_own ? 1 : 0)});
    }
    result_.statements.insert(result_.statements.begin(), first.begin(), first.end());
  }

  Statements lowered(const Statements& statements) {
    Statements out;
    Statements* const outer = std::exchange(out_, &out);
    for (const Statement& statement : statements) lower(statement);
    out_ = outer;
    return out;
  }

  void emit(Kind kind, std::string name, Expression value) {
    out_->push_back({.kind = kind, .name = std::move(name), .value = std::move(value)});
  }

  void lower(const Statement& statement) {
    switch (statement.kind) {
      case Kind::declare:
      case Kind::assign:
        return set(statement);
      case Kind::result:
        return give(statement);
      case Kind::branch:
      case Kind::loop: {
        Statement copy = statement;
        copy.body = lowered(statement.body);
        copy.otherwise = lowered(statement.otherwise);
        out_->push_back(std::move(copy));
        return;
      }
      default:
        out_->push_back(statement);
    }
  }

  std::string slope_name(const std::string& name, std::size_t slot) const {
    return fmt::format("tw_by{}_{}", slot, name);
  }

  void set(const Statement& statement) {
    const std::string& name = statement.name;
    Slopes value = lower(statement.value);
    Statement copy = statement;
    copy.value = converted(std::move(value.value), statement.value.type);
    copy.deduces_type = false;
    out_->push_back(std::move(copy));
    if (!active_.contains(name)) return;
    for (std::size_t slot = 0; slot < result_.slots.size(); ++slot) {
      emit(statement.kind, slope_name(name, slot), value.by_or_0(slot));
      known_[{name, slot}] = changing_.contains(name) || value.by[slot]
                                 ? std::optional(value.by_or_0(slot))
                                 : std::nullopt;
    }
  }

  void give(const Statement& statement) {
    Slopes value = lower(statement.value);
    for (std::size_t slot = 0; slot < result_.slots.size(); ++slot) {
      const Expression by = value.by_or_0(slot);
      note_constant(slot, by);
      emit(Kind::assign, output_name(slot), by);
    }
    ++results_;
    emit(Kind::result, {}, std::move(value.value));
  }

  void note_constant(std::size_t slot, const Expression& by) {
    std::optional<double>& constant = result_.constants[slot];
    const bool is_number = by.op == Op::floating_literal;
    if (results_ == 0 && is_number) constant = by.number;
    if (!is_number || constant != by.number) constant.reset();
  }

  // ---- expressions

  Slopes lower(const Expression& node) {
    Slopes result(node, result_.slots.size());
    if (!is_active(node)) return result;
    switch (node.op) {
      case Op::variable:
        take_variable(node, result);
        return result;
      case Op::read:
        take_read(node, result);
        return result;
      case Op::to_floating:
        return lower(node.operands[0]);
      case Op::conditional:
        return choose(node);
      case Op::select: {
        const Expression condition = local(converted(node.operands[0], Type::truth));
        const Slopes a = held(lower(node.operands[1])), b = held(lower(node.operands[2]));
        return chosen(condition, a, b);
      }
      default:
        break;
    }
    std::vector<Slopes> operands;
    for (const Expression& operand : node.operands) operands.push_back(held(lower(operand)));
    return apply_rule(node.op, operands,
                      [this](Expression value) { return local(std::move(value)); });
  }

  void take_variable(const Expression& node, Slopes& result) const {
    const bool is_local = active_.contains(node.name);
    for (std::size_t slot = 0; slot < result_.slots.size(); ++slot) {
      const DerivativeSlot& wanted = result_.slots[slot];
      const bool is_slot =
          (wanted.kind == DerivativeSlot::Kind::score && node.name == "score") ||
          (wanted.kind == DerivativeSlot::Kind::scalar && node.name == wanted.name);
      if (is_slot && !is_local) result.by[slot] = floating(1);
      if (!is_local) continue;
      const auto known = known_.find({node.name, slot});
      const bool is_zero = known != known_.end() && !known->second;
      if (is_zero) continue;
      const bool is_number = known != known_.end() && !changing_.contains(node.name) &&
                             known->second->op == Op::floating_literal;
      result.by[slot] =
          is_number ? *known->second : variable(slope_name(node.name, slot), Type::floating);
    }
  }

  // The reads are met in the order in which their slots were made, but for those in indices.
  void take_read(const Expression& node, Slopes& result) {
    const Locals locals = constant_locals(tree_.statements);
    for (std::size_t slot = 0; slot < result_.slots.size(); ++slot) {
      const DerivativeSlot& wanted = result_.slots[slot];
      if (wanted.kind != DerivativeSlot::Kind::read || wanted.name != node.name) continue;
      std::vector<Expression> indices;
      for (const Expression& operand : node.operands) indices.push_back(inlined(operand, locals));
      if (indices != wanted.indices) continue;
      result.by[slot] = floating(1);
      return;
    }
  }

  // `condition ? a : b`, of which one is evaluated.
  Slopes choose(const Expression& node) {
    const Expression condition = local(converted(node.operands[0], Type::truth));
    Slopes a, b;
    Statements then, otherwise;
    Statements* const outer = std::exchange(out_, &then);
    a = lower(node.operands[1]);
    out_ = &otherwise;
    b = lower(node.operands[2]);
    out_ = outer;
    if (then.empty() && otherwise.empty()) return chosen(condition, a, b);
    Slopes result(fresh(), result_.slots.size());
    const auto give_to = [&](const Expression& to, Expression in_a, Expression in_b) {
      emit(Kind::declare, to.name, floating(0));
      then.push_back(
          {.kind = Kind::assign, .name = to.name, .value = as_floating(std::move(in_a))});
      otherwise.push_back(
          {.kind = Kind::assign, .name = to.name, .value = as_floating(std::move(in_b))});
    };
    give_to(result.value, a.value, b.value);
    for (std::size_t slot = 0; slot < result_.slots.size(); ++slot) {
      if (!a.by[slot] && !b.by[slot]) continue;
      result.by[slot] = fresh();
      give_to(*result.by[slot], a.by_or_0(slot), b.by_or_0(slot));
    }
    out_->push_back({.kind = Kind::branch,
                     .value = condition,
                     .body = std::move(then),
                     .otherwise = std::move(otherwise)});
    return result;
  }

  Slopes chosen(const Expression& condition, const Slopes& a, const Slopes& b) {
    const auto pick = [&](Expression in_a, Expression in_b) {
      return apply(Op::conditional,
                   {condition, as_floating(std::move(in_a)), as_floating(std::move(in_b))});
    };
    Slopes result(pick(a.value, b.value), result_.slots.size());
    for (std::size_t slot = 0; slot < result_.slots.size(); ++slot) {
      if (!a.by[slot] && !b.by[slot]) continue;
      const bool is_same = a.by[slot] && b.by[slot] && *a.by[slot] == *b.by[slot];
      result.by[slot] = is_same ? *a.by[slot] : pick(a.by_or_0(slot), b.by_or_0(slot));
    }
    return held(std::move(result));
  }

  Expression fresh() { return variable(fmt::format("tw_x{}", locals_++), Type::floating); }

  // The value in a local, so that it can be used more than once.
  Expression local(Expression value) {
    if (value.operands.empty() && value.op != Op::read && value.op != Op::size) return value;
    Expression name = fresh();
    name.type = value.type;
    emit(Kind::declare, name.name, std::move(value));
    return name;
  }

  Slopes held(Slopes value) {
    value.value = local(as_floating(std::move(value.value)));
    for (std::optional<Expression>& by : value.by) {
      if (by)
        by = with_name(std::move(*by), [this](Expression rest) { return local(std::move(rest)); });
    }
    return value;
  }

  const SnippetTree& tree_;
  const DerivativeWish& wish_;
  const std::set<std::string> changing_;
  std::set<std::string> active_ = {};
  std::map<std::pair<std::string, std::size_t>, std::optional<Expression>> known_ = {};
  Derivative result_ = {};
  Statements* out_ = nullptr;
  std::size_t locals_ = 0;
  std::size_t results_ = 0;
};

}  // namespace

SnippetTree Derivative::returning(std::size_t slot) const {
  SnippetTree tree{.statements = statements};
  const auto change = [&](const auto& self, Statements& block) -> void {
    Expression by;
    for (Statement& statement : block) {
      if (statement.name == output_name(slot)) by = statement.value;
      if (statement.kind == Kind::result) statement.value = by;
      self(self, statement.body);
      self(self, statement.otherwise);
    }
    std::erase_if(block, [](const Statement& statement) {
      return statement.name.starts_with(fmt::format("{}[", kDerivativeName));
    });
  };
  change(change, tree.statements);
  return tree;
}

std::optional<Derivative> differentiate(const SnippetTree& tree, const DerivativeWish& wish) {
  return Differentiator(tree, wish).run();
}

}  // namespace tilewright::snippet
