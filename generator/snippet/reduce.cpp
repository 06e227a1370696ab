#include "generator/snippet/reduce.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "generator/snippet/rewrite.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

Factor product(Factor factor, const Factor& other, bool divides) {
  factor.literal *= divides ? 1 / other.literal : other.literal;
  for (const auto& [name, is_divisor] : other.scalars) {
    factor.scalars.emplace_back(name, is_divisor != divides);
  }
  return factor;
}

// A slope of kv_idx - q_idx, and its sign.
struct Slope {
  Expression value;
  int sign;
};

// Of a product with the difference as one of its factors.
std::optional<Slope> slope_of(const Expression& term) {
  if (const int sign = sign_of_difference(term)) return Slope{floating(1), sign};
  const bool divides = term.op == Op::divide && term.type == Type::floating;
  const bool is_wrapped = term.op == Op::negate || term.op == Op::to_floating;
  if (!divides && !is_wrapped && term.op != Op::multiply) return {};
  for (std::size_t i = 0; i < (term.op == Op::multiply ? 2U : 1U); ++i) {
    std::optional<Slope> slope = slope_of(term.operands[i]);
    if (!slope) continue;
    if (term.op == Op::negate) slope->sign = -slope->sign;
    if (is_wrapped) return slope;
    Expression other = term.operands[1 - i];
    if (other.op == Op::negate) {
      slope->sign = -slope->sign;
      other = Expression(other.operands[0]);
    }
    const bool is_one = slope->value == floating(1) && !divides;
    slope->value = is_one ? other : apply(term.op, {std::move(slope->value), std::move(other)});
    return slope;
  }
  return {};
}

bool differs_between_elements(const Expression& node) {
  constexpr std::array<std::string_view, 5> names = {"score", "q_idx", "kv_idx", "q_token",
                                                     "kv_token"};
  return node.op == Op::variable && is_one_of(node.name, names);
}

class Reducer {
 public:
  Reducer(const SnippetTree& tree, const Spec& spec)
      : spec_(spec), reduction_{.rest = simplified(tree)} {}

  ScoreReduction run() {
    std::vector<Statement>& statements = reduction_.rest.statements;
    const bool is_known = opaque(reduction_.rest) == nullptr && !statements.empty() &&
                          !changing_names(statements).contains("score");
    if (!is_known || !spec_.may_reshape_score_mod()) return std::move(reduction_);
    locals_ = constant_locals(statements);
    take_score_factor();
    int results = 0;
    for_each_statement(statements, [&](const Statement& statement) {
      results += statement.kind == Kind::result ? 1 : 0;
    });
    const bool has_one_result = results == 1 && statements.back().kind == Kind::result;
    if (has_one_result) take_result_factor(statements.back().value);
    reduction_.rest = simplified(std::move(reduction_.rest));
    const bool has_function = reduction_.is_bounded || !reduction_.of_result.is_one();
    if (has_one_result && !has_function) take_slope();
    return std::move(reduction_);
  }

 private:
  struct Product {
    const Expression* value;
    Factor factor;
  };

  static std::optional<Factor> usual(Factor factor) {
    const bool is_usual = factor.literal >= kLeastFactor && factor.literal <= kGreatestFactor;
    return is_usual ? std::optional(std::move(factor)) : std::nullopt;
  }

  std::optional<Factor> factor_of(const Expression& node) const {
    const bool is_real = node.type == Type::floating;
    if (node.op == Op::to_floating) return factor_of(node.operands[0]);
    if (node.op == Op::integer_literal) return usual({static_cast<double>(node.integer)});
    if (node.op == Op::floating_literal) return usual({node.number});
    if (is_real && node.op == Op::variable && spec_.scalars.contains(node.name)) {
      return Factor{.scalars = {{node.name, false}}};
    }
    if (node.op != Op::multiply && !(node.op == Op::divide && is_real)) return {};
    const std::optional<Factor> a = factor_of(node.operands[0]), b = factor_of(node.operands[1]);
    return a && b ? usual(product(*a, *b, node.op == Op::divide)) : std::nullopt;
  }

  // What numbers and scalars multiply or divide, and their product.
  Product peeled(const Expression& node) const {
    Product all{&node, {}};
    while (all.value->type == Type::floating) {
      const bool divides = all.value->op == Op::divide;
      if (!divides && all.value->op != Op::multiply) break;
      std::optional<Factor> factor;
      for (std::size_t i = 0; i < (divides ? 1U : 2U) && !factor; ++i) {
        const auto other = factor_of(inlined(all.value->operands[1 - i], locals_));
        if (other) factor = usual(product(all.factor, *other, divides));
        if (factor) all = {&all.value->operands[i], *factor};
      }
      if (!factor) break;
    }
    return all;
  }

  // Takes one factor that multiplies every score.
  void take_score_factor() {
    std::vector<Factor> factors;
    std::vector<Statement> rest = reduction_.rest.statements;
    for_each_node(rest, [&](Expression& node) {
      const Product product = peeled(node);
      if (!product.value->is_variable("score")) return;
      factors.push_back(product.factor);
      node = Expression(*product.value);
    });
    const auto differs = [&](const Factor& factor) { return !(factor == factors[0]); };
    if (factors.empty() || std::any_of(factors.begin(), factors.end(), differs)) return;
    reduction_.of_score = factors[0];
    reduction_.rest.statements = std::move(rest);
  }

  void take_result_factor(Expression& result) {
    const Product product = peeled(result);
    const Op op = product.value->op;
    const bool is_function = operation(op).takes == Takes::real || op == Op::absolute;
    if (!is_function || product.value->type != Type::floating) return;
    reduction_.is_bounded = op == Op::tanh || op == Op::sin || op == Op::cos;
    reduction_.of_result = product.factor;
    result = Expression(*product.value);
  }

  void take_slope() {
    SnippetTree rest = reduction_.rest;
    Expression& sum = rest.statements.back().value;
    const bool is_taken_away = sum.op == Op::subtract;
    if (sum.op != Op::add && !is_taken_away) return;
    const std::size_t term = is_taken_away || sum.operands[0].is_variable("score") ? 1 : 0;
    if (!sum.operands[1 - term].is_variable("score")) return;
    std::optional<Slope> slope = slope_of(sum.operands[term]);
    if (!slope) return;
    sum = std::move(slope->value);
    rest = simplified(std::move(rest));
    if (has_node(rest.statements, differs_between_elements)) return;
    reduction_.rest = std::move(rest);
    reduction_.slope_sign = is_taken_away ? -slope->sign : slope->sign;
  }

  const Spec& spec_;
  ScoreReduction reduction_;
  Locals locals_ = {};
};

}  // namespace

ScoreReduction reduce(const SnippetTree& tree, const Spec& spec) {
  return Reducer(tree, spec).run();
}

}  // namespace tilewright::snippet
