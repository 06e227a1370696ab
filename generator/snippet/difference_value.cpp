#include "generator/snippet/difference_value.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "generator/snippet/facts.hpp"
#include "generator/snippet/rewrite.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright::snippet {
namespace {

constexpr std::array<std::string_view, 7> kShared = {
    "b", "h", "h_kv", "q_len", "kv_len", "num_q_heads", "num_kv_heads"};

bool has_difference(const Expression& node) {
  return has_node(node, [](const Expression& one) { return sign_of_difference(one) != 0; });
}

// Whether elements of one difference have one value, in one head of a batch.
bool has_one_value_for_a_difference(const Expression& node, const Spec& spec) {
  if (sign_of_difference(node) != 0) return true;
  if (node.op == Op::call) return false;
  if (node.op == Op::variable) {
    return is_one_of(node.name, kShared) || spec.scalars.contains(node.name);
  }
  return std::all_of(node.operands.begin(), node.operands.end(), [&](const Expression& operand) {
    return has_one_value_for_a_difference(operand, spec);
  });
}

bool reads_by_difference(const Expression& node) {
  return has_node(node,
                  [](const Expression& one) { return one.op == Op::read && has_difference(one); });
}

// Functions that are more than an instruction or two, and divisions by anything but a number.
bool is_costly(const Expression& node) {
  if (operation(node.op).takes == Takes::real) return node.op != Op::floor && node.op != Op::ceil;
  if (!operation(node.op).divides()) return false;
  const Op divisor = node.operands[1].op;
  return divisor != Op::integer_literal && divisor != Op::floating_literal;
}

bool costs_by_difference(const Expression& node) {
  return has_node(node,
                  [](const Expression& one) { return is_costly(one) && has_difference(one); });
}

bool is_difference_value(const Expression& node, const Spec& spec) {
  return node.type == Type::floating && has_one_value_for_a_difference(node, spec) &&
         (reads_by_difference(node) || costs_by_difference(node));
}

class Finder {
 public:
  Finder(const SnippetTree& tree, const Spec& spec) : spec_(spec), rest_(simplified(tree)) {
    locals_ = constant_locals(rest_.statements);
  }

  std::optional<DifferenceValue> run() {
    if (spec_.may_reshape_score_mod()) {
      for_each_statement(rest_.statements, [&](Statement& one) { join_sums(one.value); });
    }
    for_each_statement(rest_.statements, [&](const Statement& one) { find(one.value); });
    if (values_.empty()) return {};
    const Expression value = *std::max_element(
        values_.begin(), values_.end(),
        [](const Expression& a, const Expression& b) { return rank(a) < rank(b); });
    for_each_statement(rest_.statements, [&](Statement& one) { replace(one.value, value); });
    return DifferenceValue{value, simplified(std::move(rest_))};
  }

 private:
  static std::tuple<bool, std::size_t> rank(const Expression& value) {
    return {reads_by_difference(value), size_of(value)};
  }

  // Brings the differences' terms of `score + x[d] + y[d]` together.
  void join_sums(Expression& node) const {
    std::vector<Term> terms;
    gather(node, false, terms);
    const auto joins = [&](const Term& term) {
      return is_difference_value(inlined(term.value, locals_), spec_);
    };
    if (std::count_if(terms.begin(), terms.end(), joins) < 2) {
      for (Expression& operand : node.operands) join_sums(operand);
      return;
    }
    std::optional<Term> joined, others;
    for (Term& term : terms) {
      std::optional<Term>& sum = joins(term) ? joined : others;
      if (!joins(term)) join_sums(term.value);
      sum = sum ? added(std::move(*sum), std::move(term)) : std::move(term);
    }
    const Term all = others ? added(std::move(*others), std::move(*joined)) : std::move(*joined);
    node = all.is_negative ? apply(Op::negate, {all.value}) : all.value;
  }

  struct Term {
    Expression value;
    bool is_negative;
  };

  static void gather(const Expression& node, bool is_negative, std::vector<Term>& terms) {
    const bool is_sum =
        node.type == Type::floating && (node.op == Op::add || node.op == Op::subtract);
    if (!is_sum) return terms.push_back({node, is_negative});
    gather(node.operands[0], is_negative, terms);
    gather(node.operands[1], is_negative != (node.op == Op::subtract), terms);
  }

  // Its sign is the first term's.
  static Term added(Term sum, Term term) {
    const bool is_taken_away = sum.is_negative != term.is_negative;
    return {apply(is_taken_away ? Op::subtract : Op::add,
                  {std::move(sum.value), std::move(term.value)}),
            sum.is_negative};
  }

  void find(const Expression& node) {
    Expression value = inlined(node, locals_);
    if (is_difference_value(value, spec_)) {
      values_.push_back(std::move(value));
      return;
    }
    for (const Expression& operand : node.operands) find(operand);
  }

  void replace(Expression& node, const Expression& value) const {
    if (inlined(node, locals_) == value) {
      node = variable(kDifferenceValueName, Type::floating);
      return;
    }
    for (Expression& operand : node.operands) replace(operand, value);
  }

  const Spec& spec_;
  SnippetTree rest_;
  Locals locals_ = {};
  std::vector<Expression> values_ = {};
};

}  // namespace

std::optional<DifferenceValue> difference_value(const SnippetTree& tree, const Spec& spec) {
  const SnippetFacts facts = find_facts(tree, spec);
  const bool is_known = !facts.is_opaque && !facts.has_lambda && !facts.needs_bounded_indices;
  return is_known ? Finder(tree, spec).run() : std::nullopt;
}

}  // namespace tilewright::snippet
