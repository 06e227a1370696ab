#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "generator/snippet/parse.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"
#include "tests/support/test_seed.hpp"
#include "verify/fuzz/case_inputs.hpp"
#include "verify/fuzz/interpreter.hpp"
#include "verify/fuzz/random_case.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;

// What a snippet gives for each element of a call.
std::vector<double> values_of(const SnippetTree& tree, const CallValues& values) {
  const Interpreter<double> interpreter(tree, values);
  const Shape& shape = values.shape;
  std::vector<double> scores(static_cast<std::size_t>(shape.kv_len));
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = 0.37 * static_cast<double>(i) - 1;
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

TEST_CASE("snippet trees: random ones survive printing and parsing, and so do their values") {
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  CaseMaker maker({.max_length = 12, .max_elements = 300}, seed);
  // 20,000 take a quarter of an hour of one core; each day has other trees.
  const int wanted = is_whole_run() ? 20'000 : is_full_run() ? 2'000 : 400;
  int trees = 0;
  while (trees < wanted) {
    const FuzzCase fuzz_case = maker.next_group(1).at(0);
    const CaseInputs inputs(fuzz_case);
    const CallValues values(fuzz_case.spec, inputs.problem().shape, inputs.problem().snippet);
    for (const auto& tree : {fuzz_case.score_mod, fuzz_case.mask_mod}) {
      if (!tree) continue;
      ++trees;
      const std::string text = to_text(*tree);
      const SnippetTree parsed = snippet::parse(tree->kind, text, fuzz_case.spec);
      INFO(text);
      if (const Statement* const statement = opaque(parsed)) FAIL("opaque: " << statement->name);
      REQUIRE(to_text(parsed) == text);
      REQUIRE(are_equal(values_of(parsed, values), values_of(*tree, values)));
    }
  }
}

}  // namespace
