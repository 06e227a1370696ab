#include "generator/snippet/facts.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "generator/snippet/print.hpp"
#include "generator/snippet/rewrite.hpp"
#include "generator/snippet/words.hpp"

namespace tilewright::snippet {
namespace {

using Kind = Statement::Kind;

// Each is the other plus a number that a sequence's elements share.
constexpr std::array<std::string_view, 2> kOfRow = {"q_idx", "q_token"};
constexpr std::array<std::string_view, 2> kOfColumn = {"kv_idx", "kv_token"};
constexpr std::array<std::string_view, 3> kOfHead = {"b", "h", "h_kv"};
constexpr std::array<std::string_view, 4> kOfCall = {"q_len", "kv_len", "num_q_heads",
                                                     "num_kv_heads"};

bool is_one_of(const Expression& node, const auto&... names) {
  return node.op == Op::variable && (tilewright::is_one_of(node.name, names) || ...);
}

// How a value changes with q_idx and kv_idx. Where it is known, and no index makes the value both
// rise and fall, the value is least and greatest at corners of a tile.
enum Direction : unsigned {
  kRisesWithQ = 1,
  kFallsWithQ = 2,
  kRisesWithKv = 4,
  kFallsWithKv = 8,
  kUnknown = 16,
  kNamesQ = kRisesWithQ | kFallsWithQ,
  kNamesKv = kRisesWithKv | kFallsWithKv,
};

unsigned reversed(unsigned direction) {
  constexpr unsigned rises = kRisesWithQ | kRisesWithKv, falls = kFallsWithQ | kFallsWithKv;
  return (direction & rises) << 1 | (direction & falls) >> 1 | (direction & kUnknown);
}

unsigned direction_of(const Expression& node) {
  if (is_one_of(node, kOfRow)) return kRisesWithQ;
  if (is_one_of(node, kOfColumn)) return kRisesWithKv;
  if (is_one_of(node, kOfHead, kOfCall) || node == integer(node.integer)) return 0;
  const bool subtracts = node.op == Op::subtract || node.op == Op::negate;
  unsigned all = 0, last = 0;
  for (const Expression& operand : node.operands) {
    const bool is_taken_away = subtracts && &operand == &node.operands.back();
    const unsigned direction = direction_of(operand);
    all |= is_taken_away ? reversed(direction) : direction;
    if (&operand != node.operands.data()) last |= direction;
  }
  const bool is_sum = subtracts || node.op == Op::add || (node.op == Op::clamp && last == 0);
  return is_sum && node.type == Type::integer ? all : all | kUnknown;
}

bool is_extreme_at_corners(unsigned direction) {
  return direction < kUnknown && (direction & kNamesQ) != kNamesQ &&
         (direction & kNamesKv) != kNamesKv;
}

BufferRead facts_of_read(const Expression& node, const Locals& locals, const BufferSpec& buffer) {
  BufferRead read{.buffer = node.name, .range = node.range};
  // What has no dimensions is read as `x`, which nothing can be outside.
  bool is_plain = node.operands.empty() || buffer.bounds != Bounds::trusted;
  read.is_linear = buffer.bounds != Bounds::trusted;
  for (const Expression& operand : node.operands) {
    Expression index = inlined(operand, locals);
    const bool widens = index.op == Op::to_wide && index.operands[0].type == Type::integer;
    if (widens) index = Expression(index.operands[0]);
    is_plain &= is_one_of(index, kOfHead, kOfRow, kOfColumn);
    const unsigned direction = direction_of(index);
    const bool names_q = (direction & kNamesQ) != 0, names_kv = (direction & kNamesKv) != 0;
    read.is_linear &= is_extreme_at_corners(direction);
    read.has_own_element |= (read.names_q_idx && names_kv) || (read.names_kv_idx && names_q);
    read.names_q_idx |= names_q;
    read.names_kv_idx |= names_kv;
    read.indices.push_back(std::move(index));
  }
  read.has_own_element &= read.is_linear;
  read.is_hoistable = is_plain && !(read.names_q_idx && read.names_kv_idx);
  return read;
}

// By anything but numbers and scalars, which do not depend on an index.
bool divides_by_unknown(const Expression& node, const Locals& locals, const Spec& spec) {
  if (!operation(node.op).divides() || node.type == Type::floating) return false;
  const Expression divisor = inlined(node.operands[1], locals);
  if (divisor.op == Op::integer_literal) return divisor.integer == 0;
  return divisor.op != Op::variable || !spec.scalars.contains(divisor.name);
}

// Whether two types are made one.
bool makes_one_type(Op op) {
  return op == Op::conditional || op == Op::select || op == Op::minimum || op == Op::maximum ||
         op == Op::clamp || op == Op::call;
}

// ---- what a kernel does anyway

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

class Reducer {
 public:
  Reducer(const SnippetTree& tree, const Spec& spec)
      : spec_(spec), reduction_{.rest = simplified(tree)} {}

  ScoreReduction run() {
    std::vector<Statement>& statements = reduction_.rest.statements;
    const bool is_known = opaque(reduction_.rest) == nullptr && !statements.empty() &&
                          !changing_names(statements).contains("score");
    if (!is_known || !spec_.may_reshape_score_mod()) return std::move(reduction_);
    locals_ = constant_locals(reduction_.rest);
    while (take_score_factor()) {
    }
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
    Expression value;
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

  // `value * c`, `c * value` or `value / c`, where `is_wanted(value)`.
  std::optional<Product> product_of(const Expression& node, const auto& is_wanted) const {
    const bool divides = node.op == Op::divide;
    if (node.op != Op::multiply && !divides) return {};
    for (std::size_t i = 0; i < (divides ? 1U : 2U); ++i) {
      if (!is_wanted(node.operands[i])) continue;
      const auto factor = factor_of(inlined(node.operands[1 - i], locals_));
      if (factor) return Product{node.operands[i], product({}, *factor, divides)};
    }
    return {};
  }

  // Takes one factor that multiplies every score.
  bool take_score_factor() {
    std::size_t scores = 0;
    std::vector<Factor> factors;
    std::vector<Statement> rest = reduction_.rest.statements;
    const auto is_score = [](const Expression& node) { return node.is_variable("score"); };
    for_each_node(rest, [&](Expression& node) {
      if (std::optional<Product> product = product_of(node, is_score)) {
        factors.push_back(std::move(product->factor));
        node = std::move(product->value);
      }
      scores += is_score(node) ? 1 : 0;
    });
    const auto is_first = [&](const Factor& factor) { return factor == factors[0]; };
    const bool is_of_all = !factors.empty() && factors.size() == scores &&
                           std::all_of(factors.begin(), factors.end(), is_first);
    if (!is_of_all) return false;
    const auto together = usual(product(reduction_.of_score, factors[0], false));
    if (!together) return false;
    reduction_.of_score = *together;
    reduction_.rest.statements = std::move(rest);
    return true;
  }

  void take_result_factor(Expression& result) {
    const auto is_real = [](const Expression& node) { return node.type == Type::floating; };
    Product all{result, {}};
    while (auto inner = product_of(all.value, is_real)) {
      const auto factor = usual(product(std::move(all.factor), inner->factor, false));
      if (!factor) return;
      all = {std::move(inner->value), *factor};
    }
    const Op op = all.value.op;
    const bool is_function = operation(op).takes == Takes::real || op == Op::absolute;
    if (!is_function || !is_real(all.value)) return;
    reduction_.is_bounded = op == Op::tanh || op == Op::sin || op == Op::cos;
    reduction_.of_result = std::move(all.factor);
    result = std::move(all.value);
  }

  void take_slope() {
    SnippetTree rest = reduction_.rest;
    Expression& sum = rest.statements.back().value;
    if (sum.op != Op::add && sum.op != Op::subtract) return;
    const std::size_t term = sum.operands[0].is_variable("score") ? 1 : 0;
    const bool is_taken_away = sum.op == Op::subtract;
    if (!sum.operands[1 - term].is_variable("score") || (is_taken_away && term == 0)) return;
    std::optional<Slope> slope = slope_of(sum.operands[term]);
    if (!slope) return;
    sum = std::move(slope->value);
    rest = simplified(std::move(rest));
    const auto differs = [](const Expression& node) {
      return node.is_variable("score") || is_one_of(node, kOfRow, kOfColumn);
    };
    if (has_node(rest.statements, differs)) return;
    reduction_.rest = std::move(rest);
    reduction_.slope_sign = is_taken_away ? -slope->sign : slope->sign;
  }

  const Spec& spec_;
  ScoreReduction reduction_;
  Locals locals_ = {};
};

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
            .needs_plain_reads = true};
  }
  SnippetFacts facts;
  const Locals locals = constant_locals(tree);
  bool deduces = false, makes_one = false;
  for_each_statement(tree.statements, [&](const Statement& statement) {
    facts.has_loop |= statement.kind == Kind::loop;
    facts.has_lambda |= statement.kind == Kind::lambda;
    deduces |= statement.deduces_type || statement.kind == Kind::lambda;
    facts.takes_index_difference |= has_node(inlined(statement.value, {}), sign_of_difference);
  });
  for_each_node(tree.statements, [&](const Expression& node) {
    facts.takes_sizes |= node.op == Op::size;
    facts.divides |= operation(node.op).divides();
    facts.needs_bounded_indices |= divides_by_unknown(node, locals, spec);
    makes_one |= makes_one_type(node.op);
    if (node.op != Op::read) return;
    const BufferSpec& buffer = spec.buffers.at(node.name);
    facts.needs_bounded_indices |= buffer.bounds == Bounds::trusted && !node.operands.empty();
    facts.reads.push_back(facts_of_read(node, locals, buffer));
  });
  facts.needs_bounded_indices |= facts.has_loop;
  facts.takes_index_difference &= !deduces;
  facts.needs_plain_reads = (makes_one || deduces) && !facts.reads.empty();
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
  return Reducer(tree, spec).run();
}

}  // namespace tilewright::snippet
