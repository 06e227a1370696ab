#include "generator/snippet/gradient_terms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>

#include "generator/snippet/rewrite.hpp"
#include "generator/spec/gradients.hpp"

namespace tilewright {
namespace {

using snippet::Derivative;
using snippet::DerivativeSlot;
using snippet::Expression;
using snippet::Op;
using snippet::Statement;

using NodeTest = std::function<bool(const Expression&)>;

bool names_variable(const Expression& node, std::string_view name) {
  return snippet::has_node(node, [&](const Expression& one) { return one.is_variable(name); });
}

bool is_difference(const Expression& node) {
  return snippet::sign_of_difference(node) != 0;
}

// Whether rows and columns are mentioned in their difference alone.
bool takes_difference_alone(const Expression& node) {
  for (const char* const place : {"q_idx", "kv_idx", "q_token", "kv_token"}) {
    if (node.is_variable(place)) return false;
  }
  return is_difference(node) ||
         std::all_of(node.operands.begin(), node.operands.end(), takes_difference_alone);
}

// How often a sum has the difference. None where it is anything but a sum of whole numbers.
std::optional<int> differences_in_sum(const Expression& node) {
  if (is_difference(node)) return 1;
  const bool is_sum = node.op == Op::add || node.op == Op::subtract || node.op == Op::negate;
  if (node.type != snippet::Type::integer || (!is_sum && !node.operands.empty())) {
    return std::nullopt;
  }
  int all = 0;
  for (const Expression& operand : node.operands) {
    const std::optional<int> count = differences_in_sum(operand);
    if (!count) return std::nullopt;
    all += *count;
  }
  return all;
}

// Which values of a snippet depend on nodes of some kind: by their own text, by what they are
// computed from, or as a condition decides whether they are assigned.
class Dependence {
 public:
  Dependence(const std::vector<Statement>& statements, NodeTest test) : test_(std::move(test)) {
    std::size_t known = 0;
    do {
      known = names_.size();
      decided_ = false;
      visit(statements);
    } while (names_.size() != known);
  }

  bool of(const std::string& name) const { return names_.contains(name); }

 private:
  bool of(const Expression& value) const {
    return snippet::has_node(value, [&](const Expression& node) {
      return test_(node) || (node.op == Op::variable && names_.contains(node.name));
    });
  }

  // What follows such a branch may also be what it leaves out.
  void visit(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) {
      const bool sets =
          statement.kind == Statement::Kind::declare || statement.kind == Statement::Kind::assign;
      const bool depends = of(statement.value);
      if (sets && (decided_ || depends)) names_.insert(statement.name);
      if (!sets && statement.kind != Statement::Kind::result) decided_ = decided_ || depends;
      visit(statement.body);
      visit(statement.otherwise);
    }
  }

  NodeTest test_;
  std::set<std::string> names_ = {};
  bool decided_ = false;
};

std::string output_name(std::size_t slot) {
  return fmt::format("{}[{}]", snippet::kDerivativeName, slot);
}

using Magnitudes = std::map<std::string, double>;

// The greatest magnitude that a value has whatever numbers its operands are, as far as the text
// says one. locals: those that have one
std::optional<double> bound_of(const Expression& node, const Magnitudes& locals) {
  if (node.op == Op::floating_literal) return std::abs(node.number);
  if (node.op == Op::tanh) return 1;
  if (node.op == Op::variable) {
    const auto local = locals.find(node.name);
    return local == locals.end() ? std::nullopt : std::optional(local->second);
  }
  const bool is_sum = node.op == Op::add || node.op == Op::subtract;
  if (!is_sum && node.op != Op::multiply && node.op != Op::negate) return std::nullopt;
  std::optional<double> bound;
  for (const Expression& operand : node.operands) {
    const std::optional<double> other = bound_of(operand, locals);
    if (!other) return std::nullopt;
    bound = !bound ? *other : is_sum ? *bound + *other : *bound * *other;
  }
  return bound;
}

// Whether a result may be infinite or NaN though its operands are finite; or a leaf may be.
bool may_overflow(const Expression& node, const std::set<std::string>& locals) {
  if (node.type != snippet::Type::floating) return false;
  constexpr double kSmallFactor = 1024;
  const auto is_small = [](const Expression& operand) {
    return operand.op == Op::floating_literal && std::abs(operand.number) <= kSmallFactor;
  };
  switch (node.op) {
    case Op::floating_literal:
      return !std::isfinite(node.number);
    case Op::variable:
      return !locals.contains(node.name);
    case Op::multiply:
      return !std::any_of(node.operands.begin(), node.operands.end(), is_small);
    case Op::add:
    case Op::subtract:
    case Op::negate:
    case Op::minimum:
    case Op::maximum:
    case Op::absolute:
    case Op::sign:
    case Op::clamp:
    case Op::select:
    case Op::conditional:
    case Op::to_floating:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string_view to_string(GradientPattern pattern) {
  constexpr std::array<std::string_view, 5> kNames = {"head", "row", "column", "difference",
                                                      "element"};
  return kNames.at(static_cast<std::size_t>(pattern));
}

GradientPattern pattern_of(const DerivativeSlot& slot) {
  const auto any = [&](std::string_view name) {
    return std::any_of(slot.indices.begin(), slot.indices.end(),
                       [&](const Expression& index) { return names_variable(index, name); });
  };
  if (any("score")) return GradientPattern::element;
  const bool by_row = any("q_idx") || any("q_token");
  const bool by_column = any("kv_idx") || any("kv_token");
  if (!by_row && !by_column) return GradientPattern::head;
  if (!by_column) return GradientPattern::row;
  if (!by_row) return GradientPattern::column;
  return std::all_of(slot.indices.begin(), slot.indices.end(), takes_difference_alone)
             ? GradientPattern::difference
             : GradientPattern::element;
}

bool has_cell_for_each_difference(const DerivativeSlot& slot) {
  return std::any_of(slot.indices.begin(), slot.indices.end(),
                     [](const Expression& index) { return differences_in_sum(index) == 1; });
}

bool is_finite(const Derivative& derivative, std::size_t slot) {
  std::set<std::string> locals;
  bool loops = false;
  snippet::for_each_statement(derivative.statements, [&](const Statement& statement) {
    if (statement.kind == Statement::Kind::declare) locals.insert(statement.name);
    loops = loops || statement.kind == Statement::Kind::loop;
  });
  const Dependence infinite(derivative.statements,
                            [&](const Expression& node) { return may_overflow(node, locals); });
  return !loops && !infinite.of(output_name(slot));
}

bool is_bounded(const Derivative& by_score) {
  Magnitudes locals;
  std::optional<double> bound;
  for (const Statement& statement : by_score.statements) {
    const bool is_output =
        statement.kind == Statement::Kind::assign && statement.name == output_name(0);
    if (is_output) {
      bound = bound_of(statement.value, locals);
    } else if (statement.kind == Statement::Kind::declare) {
      if (const auto of_local = bound_of(statement.value, locals)) {
        locals[statement.name] = *of_local;
      }
    } else if (statement.kind != Statement::Kind::result) {
      return false;
    }
  }
  return bound && *bound <= std::numeric_limits<float>::max();
}

bool is_branched(const Derivative& derivative, std::size_t slot) {
  bool has_statements = false;
  snippet::for_each_statement(derivative.statements, [&](const Statement& statement) {
    has_statements = has_statements || statement.kind == Statement::Kind::branch;
  });
  const Dependence branched(derivative.statements, [](const Expression& node) {
    return node.op == Op::select || node.op == Op::conditional;
  });
  return has_statements || branched.of(output_name(slot));
}

std::optional<GradientTerms> gradient_terms(const SpecFacts& facts) {
  const std::vector<std::string> names = gradient_names(facts.spec);
  GradientTerms terms{.adds_to_score = true, .patterns = {}};
  if (names.empty() || !facts.score_mod) return terms;
  const snippet::SnippetTree& tree = facts.score_mod->tree;
  const auto by_score = snippet::differentiate(tree, {});
  const auto by_names =
      snippet::differentiate(tree, {.by_score = false, .names = {names.begin(), names.end()}});
  if (!by_score || !by_names) return std::nullopt;
  terms.adds_to_score = by_score->constants[0] == 1.0;
  const Dependence on_score(by_names->statements,
                            [](const Expression& node) { return node.is_variable("score"); });
  for (std::size_t slot = 0; slot < by_names->slots.size(); ++slot) {
    terms.patterns.push_back(pattern_of(by_names->slots[slot]));
    if (on_score.of(output_name(slot))) terms.adds_to_score = false;
  }
  return terms;
}

std::int64_t portable_diagonals(const GradientTerms& terms) {
  return std::min<std::int64_t>(
      std::count(terms.patterns.begin(), terms.patterns.end(), GradientPattern::difference),
      kMostDiagonals);
}

std::optional<UnknownDerivative> unknown_derivative(const SpecFacts& facts) {
  if (facts.spec.gradients.empty() || !facts.score_mod) return std::nullopt;
  const snippet::SnippetTree& tree = facts.score_mod->tree;
  const std::vector<std::string> names = gradient_names(facts.spec);
  const bool by_score = snippet::differentiate(tree, {}).has_value();
  const bool by_names = names.empty() || gradient_terms(facts).has_value();
  if (by_score && by_names) return std::nullopt;
  const Statement* const opaque = snippet::opaque(tree);
  return UnknownDerivative{by_score ? "no derivative of this snippet by a buffer's reads is known"
                                    : "no derivative of this snippet by the score is known",
                           opaque != nullptr ? opaque->value.range.begin : 0};
}

void require_known_derivative(const SpecFacts& facts) {
  const std::optional<UnknownDerivative> unknown = unknown_derivative(facts);
  if (!unknown) return;
  throw snippet_error(SnippetKind::score_mod, facts.score_mod->snippet.text, unknown->begin,
                      unknown->message,
                      "write it without lambdas, unsigned numbers, arrays and references, and "
                      "without loops that read a buffer that has a gradient");
}

}  // namespace tilewright
