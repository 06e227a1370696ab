#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/case_inputs.hpp"
#include "fuzz/interpreter.hpp"
#include "fuzz/random_case.hpp"
#include "generator/snippet/parse.hpp"
#include "generator/snippet/reduce.hpp"
#include "generator/snippet/rewrite.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/test_seed.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;

// What a snippet gives for each element of a call, with scores times `of_score`.
std::vector<double> values_of(const SnippetTree& tree, const CallValues& values,
                              double of_score = 1) {
  const Interpreter<double> interpreter(tree, values);
  const Shape& shape = values.shape;
  std::vector<double> scores(static_cast<std::size_t>(shape.kv_len));
  for (std::size_t i = 0; i < scores.size(); ++i)
    scores[i] = of_score * (0.37 * static_cast<double>(i) - 1);
  std::vector<double> all;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.num_q_heads; ++h) {
      for (std::int64_t row = 0; row < shape.q_len; ++row) {
        std::vector<double> row_values(scores.size());
        if (tree.kind == SnippetKind::score_mod) {
          interpreter.modify({b, h, row}, scores.data(), row_values.data());
        } else {
          std::vector<unsigned char> keep(scores.size());
          interpreter.keep({b, h, row}, keep.data());
          row_values.assign(keep.begin(), keep.end());
        }
        all.insert(all.end(), row_values.begin(), row_values.end());
      }
    }
  }
  return all;
}

bool are_equal(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

double value_of(const snippet::Factor& factor, const CallValues& values) {
  double value = factor.literal;
  for (const auto& [name, divides] : factor.scalars) {
    const double scalar = static_cast<float>(values.scalars.at(name).value);
    value = divides ? value / scalar : value * scalar;
  }
  return value;
}

// What a kernel makes of what is left of score_mod.
std::vector<double> completed(const snippet::ScoreReduction& reduction, const CallValues& values) {
  const double of_score = value_of(reduction.of_score, values);
  std::vector<double> all = values_of(reduction.rest, values, of_score);
  const auto columns = static_cast<std::size_t>(values.shape.kv_len);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i / columns) % values.shape.q_len;
    const auto column = static_cast<std::int64_t>(i % columns);
    const double score = of_score * (0.37 * static_cast<double>(column) - 1);
    const auto distance =
        static_cast<double>(column + values.shape.kv_offset - row - values.shape.q_offset);
    all[i] *= value_of(reduction.of_result, values);
    if (reduction.slope_sign != 0) all[i] = score + reduction.slope_sign * all[i] * distance;
  }
  return all;
}

template <typename Change>
void change_all(std::vector<Statement>& statements, const Change& change) {
  for_each_statement(statements, [&](Statement& one) { transform(one.value, change); });
}

// The tree with a factor of every score, and of the function that is its result: powers of 2, which
// round nothing.
SnippetTree scaled(SnippetTree tree) {
  change_all(tree.statements, [](Expression& node) {
    if (node.op == Op::variable && node.name == "score") {
      node = apply(Op::divide, {node, floating(4)});
    }
  });
  Expression& result = tree.statements.back().value;
  result = apply(Op::multiply, {apply(Op::tanh, {converted(result, Type::floating)}), floating(8)});
  return tree;
}

// score, and the tree's result as a slope, which names no element.
SnippetTree sloped(SnippetTree tree) {
  change_all(tree.statements, [](Expression& node) {
    if (node.op != Op::variable) return;
    if (node.name == "score") node = floating(0.5);
    if (node.name == "q_idx") node = variable("h");
    if (node.name == "kv_idx") node = variable("b");
  });
  Expression& result = tree.statements.back().value;
  const Expression slope = converted(result, Type::floating);
  const Expression difference = apply(Op::subtract, {variable("q_idx"), variable("kv_idx")});
  result = apply(Op::subtract,
                 {variable("score", Type::floating), apply(Op::multiply, {slope, difference})});
  return tree;
}

bool is_power_of_2(double value) {
  int exponent = 0;
  return std::abs(std::frexp(value, &exponent)) == 0.5;
}

// A multiplication rounds once, in the tree and in its reduction. A quotient becomes a product with
// the reciprocal, which is rounded too.
bool rounds_once(const SnippetTree& tree) {
  int products = 0, quotients = 0;
  snippet::for_each_node(tree.statements, [&](const Expression& node) {
    if (node.type != Type::floating) return;
    products += node.op == Op::multiply ? 1 : 0;
    quotients += node.op == Op::divide ? 1 : 0;
  });
  return products <= 1 && quotients == 0;
}

// Whether the tree does what C++ defines, and something was taken out of it. Values are equal to
// the last bit where factors are powers of 2 or the tree rounds once. A tree that multiplies a
// score by 1.5 and by 1.13 rounds twice, and its reduction once, after which floor or a comparison
// may differ by any amount: such a tree is not counted.
bool check_reduction(const SnippetTree& tree, const Spec& spec, const CallValues& values) {
  const snippet::ScoreReduction reduction = snippet::reduce(tree, spec);
  INFO(to_text(tree));
  INFO("reduced: " << to_text(reduction.rest));
  std::vector<double> expected;
  try {
    expected = values_of(tree, values);
  } catch (const Error&) {
    return false;
  }
  const bool is_exact = is_power_of_2(value_of(reduction.of_score, values)) &&
                        is_power_of_2(value_of(reduction.of_result, values));
  if (!is_exact && !rounds_once(tree)) return false;
  REQUIRE(are_equal(completed(reduction, values), expected));
  return reduction.slope_sign != 0 || reduction.has_factors();
}

// The lengths of a packed call are those of all sequences together.
void make_small(Shape& shape) {
  constexpr std::int64_t kMost = 12;
  shape.batch = std::min<std::int64_t>(shape.batch, 3);
  shape.q_len = std::min(shape.q_len, kMost);
  shape.kv_len = std::min(shape.kv_len, kMost);
}

TEST_CASE(
    "snippet trees: random ones survive printing, parsing and rewriting, and so do their values") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  CaseMaker maker({.max_length = 12, .max_elements = 300}, seed);
  // 20,000 take a quarter of an hour of one core; each day has other trees.
  const int wanted = is_whole_run() ? 20'000 : is_full_run() ? 1'000 : 250;
  int trees = 0, scaled_trees = 0, sloped_trees = 0;
  while (trees < wanted) {
    const FuzzCase fuzz_case = maker.next_group(1).at(0);
    const CaseInputs inputs(fuzz_case);
    CallValues values(fuzz_case.spec, inputs.problem().shape, inputs.problem().snippet);
    make_small(values.shape);
    for (const auto& tree : {fuzz_case.score_mod, fuzz_case.mask_mod}) {
      if (!tree) continue;
      ++trees;
      const std::string text = to_text(*tree);
      const SnippetTree parsed = snippet::parse(tree->kind, text, fuzz_case.spec);
      INFO(text);
      if (const Statement* const statement = opaque(parsed)) FAIL("opaque: " << statement->name);
      REQUIRE(to_text(parsed) == text);
      const std::vector<double> expected = values_of(*tree, values);
      REQUIRE(are_equal(values_of(parsed, values), expected));
      const SnippetTree simple = snippet::simplified(*tree);
      INFO("simplified: " << to_text(simple));
      REQUIRE(are_equal(values_of(simple, values), expected));
      if (tree->kind == SnippetKind::mask_mod) continue;
      scaled_trees += check_reduction(scaled(*tree), fuzz_case.spec, values) ? 1 : 0;
      sloped_trees += check_reduction(sloped(*tree), fuzz_case.spec, values) ? 1 : 0;
    }
  }
  CHECK(scaled_trees > wanted / 100);
  CHECK(sloped_trees > wanted / 100);
}

}  // namespace
