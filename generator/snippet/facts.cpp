#include "generator/snippet/facts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "generator/snippet/print.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

bool is_variable(const Expression& node, std::string_view name) {
  return node.op == Op::variable && node.name == name;
}

bool names_one_of(const Expression& node, const auto& names) {
  return node.op == Op::variable && std::find(names.begin(), names.end(), node.name) != names.end();
}

template <typename Tree, typename Test>
bool has_node(const Tree& tree, const Test& test) {
  bool found = false;
  for_each_node(tree, [&](const Expression& node) { found |= test(node); });
  return found;
}

// Each is the other plus a number that a sequence's elements share.
constexpr std::array<std::string_view, 2> kOfRow = {"q_idx", "q_token"};
constexpr std::array<std::string_view, 2> kOfColumn = {"kv_idx", "kv_token"};

// Which of the two are part of a sum.
struct Parts {
  bool q_idx = false;
  bool kv_idx = false;
  bool clamped = false;  // one of them inside a clamp

  bool any() const { return q_idx || kv_idx; }
  void add(const Parts& other) {
    q_idx |= other.q_idx;
    kv_idx |= other.kv_idx;
    clamped |= other.clamped;
  }
};

// A clamp with another part beside it is greatest and least anywhere: clamp(d, 0, 64) +
// clamp(-d, 0, 64).
std::optional<Parts> parts_of_sum(const Expression& node) {
  constexpr std::array<std::string_view, 7> of_call = {
      "b", "h", "h_kv", "q_len", "kv_len", "num_q_heads", "num_kv_heads"};
  if (node.type != Type::integer) return {};
  if (node.op == Op::integer_literal || names_one_of(node, of_call)) return Parts{};
  if (names_one_of(node, kOfRow)) return Parts{.q_idx = true};
  if (names_one_of(node, kOfColumn)) return Parts{.kv_idx = true};
  const bool is_sum = node.op == Op::add || node.op == Op::subtract || node.op == Op::negate;
  if (!is_sum && node.op != Op::clamp) return {};
  Parts sum;
  for (const Expression& operand : node.operands) {
    const std::optional<Parts> parts = parts_of_sum(operand);
    if (!parts || (sum.any() && parts->any() && (sum.clamped || parts->clamped))) return {};
    if (node.op == Op::clamp && &operand != node.operands.data() && parts->any()) return {};
    sum.add(*parts);
  }
  sum.clamped |= node.op == Op::clamp && sum.any();
  return sum;
}

void decide_linear(BufferRead& read) {
  Parts all;
  for (const Expression& index : read.indices) {
    const std::optional<Parts> parts = parts_of_sum(index);
    if (!parts) return;
    read.has_own_element |= (all.q_idx && parts->kv_idx) || (all.kv_idx && parts->q_idx);
    all.add(*parts);
  }
  read.is_linear = true;
}

BufferRead facts_of_read(const Expression& node, const Locals& locals, const BufferSpec& buffer) {
  constexpr std::array<std::string_view, 7> plain = {"b",      "h",       "h_kv",    "q_idx",
                                                     "kv_idx", "q_token", "kv_token"};
  BufferRead read{.buffer = node.name, .range = node.range};
  // What has no dimensions is read as `x`, which nothing can be outside.
  bool is_plain = node.operands.empty() || buffer.bounds != Bounds::trusted;
  for (const Expression& operand : node.operands) {
    Expression index = inlined(operand, locals);
    const bool widens = index.op == Op::to_wide && index.operands[0].type == Type::integer;
    if (widens) index = Expression(index.operands[0]);
    is_plain &= names_one_of(index, plain);
    const auto names = [&](const auto& wanted) {
      return has_node(index, [&](const Expression& inner) { return names_one_of(inner, wanted); });
    };
    read.names_q_idx |= names(kOfRow);
    read.names_kv_idx |= names(kOfColumn);
    read.indices.push_back(std::move(index));
  }
  read.is_hoistable = is_plain && !(read.names_q_idx && read.names_kv_idx);
  if (buffer.bounds != Bounds::trusted) decide_linear(read);
  return read;
}

bool divides(Op op) {
  return op == Op::divide || op == Op::remainder || op == Op::floor_quotient ||
         op == Op::floor_remainder;
}

// By anything but numbers and scalars, which do not depend on an index.
bool divides_by_unknown(const Expression& node, const Locals& locals, const Spec& spec) {
  if (!divides(node.op)) return false;
  if (node.type == Type::floating) return false;
  const Expression divisor = inlined(node.operands[1], locals);
  if (divisor.op == Op::integer_literal) return divisor.integer == 0;
  return divisor.op != Op::variable || !spec.scalars.contains(divisor.name);
}

bool is_difference_of_indices(const Expression& node) {
  if (node.op != Op::subtract) return false;
  const Expression& a = node.operands[0];
  const Expression& b = node.operands[1];
  return (is_variable(a, "kv_idx") && is_variable(b, "q_idx")) ||
         (is_variable(a, "q_idx") && is_variable(b, "kv_idx"));
}

// ---- what a kernel does anyway

// What names of a factor stand for.
struct Names {
  const Spec& spec;
  Locals locals;
};

bool multiply(Factor& factor, const Factor& other, bool divides) {
  factor.literal *= divides ? 1 / other.literal : other.literal;
  for (const auto& [name, is_divisor] : other.scalars) {
    factor.scalars.emplace_back(name, is_divisor != divides);
  }
  return factor.literal >= kLeastFactor && factor.literal <= kGreatestFactor;
}

std::optional<Factor> factor_of(const Expression& node, const Spec& spec) {
  if (node.op == Op::to_floating) return factor_of(node.operands[0], spec);
  const bool is_literal = node.op == Op::integer_literal || node.op == Op::floating_literal;
  if (is_literal) {
    const double value =
        node.op == Op::integer_literal ? static_cast<double>(node.integer) : node.number;
    if (!(value >= kLeastFactor && value <= kGreatestFactor)) return {};
    return Factor{.literal = value};
  }
  const bool is_real = node.type == Type::floating;
  if (is_real && node.op == Op::variable && spec.scalars.contains(node.name)) {
    return Factor{.scalars = {{node.name, false}}};
  }
  if (node.op != Op::multiply && !(node.op == Op::divide && is_real)) return {};
  std::optional<Factor> factor = factor_of(node.operands[0], spec);
  const std::optional<Factor> other = factor_of(node.operands[1], spec);
  if (!factor || !other || !multiply(*factor, *other, node.op == Op::divide)) return {};
  return factor;
}

// `value * c`, `c * value` or `value / c`, where `is_wanted(value)`.
struct Product {
  std::size_t value;  // of the operands
  Factor factor;
};

template <typename Wanted>
std::optional<Product> product_of(const Expression& node, const Names& names,
                                  const Wanted& wanted) {
  if (node.op != Op::multiply && node.op != Op::divide) return {};
  for (std::size_t i = 0; i < (node.op == Op::divide ? 1U : 2U); ++i) {
    if (!wanted(node.operands[i])) continue;
    const Expression beside = inlined(node.operands[1 - i], names.locals);
    const std::optional<Factor> other = factor_of(beside, names.spec);
    Factor factor;
    if (other && multiply(factor, *other, node.op == Op::divide)) return Product{i, factor};
  }
  return {};
}

bool is_equal(const Factor& a, const Factor& b) {
  return a.literal == b.literal && a.scalars == b.scalars;
}

bool is_score(const Expression& node) {
  return is_variable(node, "score");
}

// Finds products with score; `factor` is that of the first.
void find_products(const Expression& node, const Names& names, std::vector<Factor>& factors) {
  if (const auto product = product_of(node, names, is_score)) factors.push_back(product->factor);
  for (const Expression& operand : node.operands) find_products(operand, names, factors);
}

void drop_products(Expression& node, const Names& names) {
  if (const auto product = product_of(node, names, is_score)) {
    node = Expression(node.operands[product->value]);
    return;
  }
  for (Expression& operand : node.operands) drop_products(operand, names);
}

void drop_products(std::vector<Statement>& statements, const Names& names) {
  for (Statement& statement : statements) {
    drop_products(statement.value, names);
    drop_products(statement.body, names);
    drop_products(statement.otherwise, names);
  }
}

// Takes one factor that multiplies every score.
bool take_score_factor(ScoreReduction& reduction, const Names& names) {
  std::size_t scores = 0;
  std::vector<Factor> factors;
  for_each_node(reduction.rest.statements,
                [&](const Expression& node) { scores += is_score(node); });
  for_each_statement(reduction.rest.statements, [&](const Statement& statement) {
    find_products(statement.value, names, factors);
  });
  if (factors.empty() || factors.size() != scores) return false;
  const auto differs = [&](const Factor& factor) { return !is_equal(factor, factors[0]); };
  if (std::any_of(factors.begin(), factors.end(), differs)) return false;
  Factor together = reduction.of_score;
  if (!multiply(together, factors[0], false)) return false;
  reduction.of_score = together;
  drop_products(reduction.rest.statements, names);
  return true;
}

// The value of the only `return`, if that is the last statement.
Expression* only_result(SnippetTree& tree) {
  int results = 0;
  for_each_statement(tree.statements, [&](const Statement& statement) {
    results += statement.kind == Kind::result ? 1 : 0;
  });
  Statement& last = tree.statements.back();
  return results == 1 && last.kind == Kind::result ? &last.value : nullptr;
}

void take_result_factor(ScoreReduction& reduction, const Names& names) {
  constexpr std::array bounded = {Op::tanh, Op::sin, Op::cos};
  constexpr std::array real = {Op::tanh, Op::exp, Op::log,     Op::sqrt,
                               Op::sin,  Op::cos, Op::absolute};
  Expression* const result = only_result(reduction.rest);
  if (result == nullptr) return;
  Expression value = *result;
  Factor factor;
  const auto any = [](const Expression& node) { return node.type == Type::floating; };
  while (const auto product = product_of(value, names, any)) {
    if (!multiply(factor, product->factor, false)) return;
    value = Expression(value.operands[product->value]);
  }
  const auto is_among = [&](const auto& ops) {
    return std::find(ops.begin(), ops.end(), value.op) != ops.end();
  };
  if (!is_among(real) || value.type != Type::floating) return;
  reduction.is_bounded = is_among(bounded);
  reduction.of_result = factor;
  *result = value;
}

// 1 for kv_idx - q_idx in normal form, -1 for q_idx - kv_idx, 0 for anything else.
int sign_of_difference(const Expression& node) {
  if (node.op != Op::add) return 0;
  const auto bare = [](const Expression& x) -> const Expression& {
    return x.op == Op::to_floating ? x.operands[0] : x;
  };
  for (const std::size_t i : {0U, 1U}) {
    const Expression& negated = bare(node.operands[1 - i]);
    if (negated.op != Op::negate) continue;
    const Expression& plus = bare(node.operands[i]);
    const Expression& minus = bare(negated.operands[0]);
    if (is_variable(plus, "kv_idx") && is_variable(minus, "q_idx")) return 1;
    if (is_variable(plus, "q_idx") && is_variable(minus, "kv_idx")) return -1;
  }
  return 0;
}

struct Slope {
  Expression value;
  int sign;
};

// Of a product in normal form with the difference as one of its factors.
std::optional<Slope> slope_of(const Expression& term) {
  if (const int sign = sign_of_difference(term)) return Slope{floating(1), sign};
  if (term.op == Op::negate || term.op == Op::to_floating) {
    std::optional<Slope> slope = slope_of(term.operands[0]);
    if (slope && term.op == Op::negate) slope->sign = -slope->sign;
    return slope;
  }
  const bool divides = term.op == Op::divide && term.type == Type::floating;
  if (!divides && term.op != Op::multiply) return {};
  for (const std::size_t i : {0U, 1U}) {
    if (divides && i == 1) return {};
    std::optional<Slope> slope = slope_of(term.operands[i]);
    if (!slope) continue;
    const bool is_one = slope->value == floating(1) && !divides;
    slope->value = is_one ? term.operands[1 - i]
                          : apply(term.op, {std::move(slope->value), term.operands[1 - i]});
    return slope;
  }
  return {};
}

void take_slope(ScoreReduction& reduction) {
  Expression* const result = only_result(reduction.rest);
  if (result == nullptr) return;
  const Expression sum = normal(*result);
  if (sum.op != Op::add) return;
  const std::size_t term = is_score(sum.operands[0]) ? 1 : 0;
  if (!is_score(sum.operands[1 - term])) return;
  std::optional<Slope> slope = slope_of(sum.operands[term]);
  if (!slope) return;
  SnippetTree rest = reduction.rest;
  rest.statements.back().value = std::move(slope->value);
  rest = simplified(rest);
  constexpr std::array<std::string_view, 5> of_elements = {"score", "q_idx", "kv_idx", "q_token",
                                                           "kv_token"};
  const auto differs = [&](const Expression& node) { return names_one_of(node, of_elements); };
  if (has_node(rest.statements, differs)) return;
  reduction.rest = std::move(rest);
  reduction.slope_sign = slope->sign;
}

}  // namespace

std::string indices_text(const BufferRead& read) {
  std::vector<std::string> texts;
  for (const Expression& index : read.indices) texts.push_back(to_text(index));
  return fmt::format("{}", fmt::join(texts, ", "));
}

SnippetFacts find_facts(const SnippetTree& tree, const Spec& spec) {
  if (opaque(tree) != nullptr) {
    return {.is_opaque = true,
            .has_loop = tree.has_loop_words,
            .divides = true,
            .needs_bounded_indices = true,
            .needs_plain_reads = true,
            .may_have_conditional_effects = true};
  }
  SnippetFacts facts;
  const Locals locals = constant_locals(tree);
  bool deduces = false, makes_one_type = false;
  for_each_statement(tree.statements, [&](const Statement& statement) {
    facts.has_loop |= statement.kind == Kind::loop;
    facts.has_lambda |= statement.kind == Kind::lambda;
    deduces |= statement.deduces_type || statement.kind == Kind::lambda;
  });
  for_each_node(tree.statements, [&](const Expression& node) {
    const Op op = node.op;
    facts.takes_sizes |= op == Op::size;
    facts.divides |= divides(op);
    facts.needs_bounded_indices |=
        divides_by_unknown(node, locals, spec) || (op == Op::call && node.type == Type::unknown);
    facts.takes_index_difference |= is_difference_of_indices(inlined(node, {}));
    makes_one_type |= op == Op::conditional || op == Op::select || op == Op::minimum ||
                      op == Op::maximum || op == Op::clamp || op == Op::call;
    if (op != Op::read) return;
    const BufferSpec& buffer = spec.buffers.at(node.name);
    facts.needs_bounded_indices |= buffer.bounds == Bounds::trusted && !node.operands.empty();
    facts.reads.push_back(facts_of_read(node, locals, buffer));
  });
  facts.needs_bounded_indices |= facts.has_loop;
  facts.takes_index_difference &= !deduces;
  facts.needs_plain_reads = (makes_one_type || deduces) && !facts.reads.empty();
  return facts;
}

std::vector<BufferRead> linear_reads(const SnippetFacts& facts) {
  std::vector<BufferRead> reads;
  for (const BufferRead& read : facts.reads) {
    if (read.is_hoistable) continue;
    if (!read.is_linear) return {};
    reads.push_back(read);
  }
  return reads;
}

ScoreReduction reduce(const SnippetTree& tree, const Spec& spec) {
  ScoreReduction reduction{.rest = simplified(tree)};
  if (!spec.may_reshape_score_mod() || opaque(tree) != nullptr) return reduction;
  const Names names{spec, constant_locals(reduction.rest)};
  while (take_score_factor(reduction, names)) {
  }
  take_result_factor(reduction, names);
  reduction.rest = simplified(reduction.rest);
  if (reduction.of_result.is_one() && !reduction.is_bounded) take_slope(reduction);
  return reduction;
}

}  // namespace tilewright::snippet
