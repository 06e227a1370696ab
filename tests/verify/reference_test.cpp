#include "verify/reference.hpp"

#include <cmath>
#include <limits>

#include "runtime/api/thread_pool.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"
#include "tests/verify/faulty_attention.hpp"
#include "verify/naive.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

// One query against three keys, one number wide: scores are k, values are 1, 10, 100.
DenseProblem three_keys(double k0, double k1, double k2) {
  return {.q = {1, 1, 1, 1, {1.0}},
          .k = {1, 1, 3, 1, {k0, k1, k2}},
          .v = {1, 1, 3, 1, {1.0, 10.0, 100.0}},
          .scale = 1};
}

// Scores pass unchanged; `kept` says which columns stay.
template <typename Score>
RowSnippets<Score> keeping(std::vector<bool> kept) {
  return [kept](std::int64_t, std::int64_t, std::int64_t, const Score* scores, Score* modified,
                unsigned char* keep) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      modified[i] = scores[i];
      keep[i] = kept[i];
    }
  };
}

Reference attend(const DenseProblem& problem, const std::vector<bool>& kept) {
  return reference_attention(problem, keeping<double>(kept), ThreadPool::shared());
}

}  // namespace

TEST_CASE("reference: three keys, worked out by hand") {
  // Weights 1, 2, 3 over 6.
  const Reference reference =
      attend(three_keys(std::log(1.0), std::log(2.0), std::log(3.0)), {true, true, true});
  CHECK_THAT(reference.values.out.data[0], Catch::Matchers::WithinRel((1 + 20 + 300) / 6.0, 1e-14));
  CHECK_THAT(reference.values.lse.data[0], Catch::Matchers::WithinRel(std::log(6.0), 1e-14));
  CHECK_THAT(reference.sizes.scores.data[0], Catch::Matchers::WithinRel(std::log(3.0), 1e-14));
}

TEST_CASE("reference: a score that float32 gives no weight is none of the greatest") {
  const auto greatest = [](double k2) {
    return attend(three_keys(1, 3, k2), {true, true, true}).sizes.scores.data[0];
  };
  CHECK(greatest(-1e30) == 3);
  CHECK(greatest(-102) == 3);
  CHECK_THAT(greatest(-100), Catch::Matchers::WithinRel(100.0, 1e-14));
}

TEST_CASE("reference: what a row's own bounds are made of") {
  DenseProblem problem = three_keys(1, -3, 2);
  problem.q.data[0] = -2;
  problem.out_scales = {-4};
  const BoundSizes sizes = attend(problem, {true, true, false}).sizes;
  CHECK(sizes.products.data[0] == 6);       // |q| |k| of the second key
  CHECK(sizes.values.data[0] == 10 / 4.0);  // the third is dropped
  CHECK(sizes.lost.data[0] == 0);
}

TEST_CASE("reference: a typical score is near the median of what is neither 0 nor wild") {
  CHECK(typical_score({}) == 0);
  CHECK(typical_score({0, 1e30, kNan, kInf}) == 0);
  CHECK(typical_score({0, 1e30, 7, 1e30, 3, 1e30, 1e30, 8, 2047}) == 8);
  CHECK(typical_score({1, 2, 3, 7, 9}) == 9);
  CHECK(typical_score({1, 2, 3, 7, 13}) == 7);
}

TEST_CASE("reference: what weights below 2^-117 bring is told") {
  DenseProblem problem = three_keys(0, -70, -90);  // 2^-101 and 2^-130
  problem.v.data[2] = -100;
  const Reference alone = attend(problem, {true, true, true});
  CHECK_THAT(alone.sizes.lost.data[0], Catch::Matchers::WithinRel(100 * std::exp(-90), 1e-14));
  problem.sink = Values{1, 1, 1, 1, {85.0}};
  const Reference beside_sink = attend(problem, {true, true, true});
  CHECK_THAT(beside_sink.sizes.lost.data[0],
             Catch::Matchers::WithinRel(1 * std::exp(-85) + 10 * std::exp(-155), 1e-14));
  CHECK_THAT(beside_sink.values.out.data[0], Catch::Matchers::WithinRel(std::exp(-85), 1e-14));
}

TEST_CASE("reference: a dropped key takes no part, whatever it and its value hold") {
  for (const double bad : {kNan, kInf, 1e300}) {
    DenseProblem problem = three_keys(std::log(1.0), std::log(3.0), bad);
    problem.v.data[2] = kNan;
    const Reference reference = attend(problem, {true, true, false});
    CHECK_THAT(reference.values.out.data[0], Catch::Matchers::WithinRel(31 / 4.0, 1e-14));
    CHECK_THAT(reference.values.lse.data[0], Catch::Matchers::WithinRel(std::log(4.0), 1e-14));
  }
}

TEST_CASE("reference: a row with nothing kept, or only -inf, gives out 0 and lse -inf") {
  const Reference none = attend(three_keys(1, 2, 3), {false, false, false});
  CHECK(none.values.out.data[0] == 0);
  CHECK(none.values.lse.data[0] == -kInf);
  const Reference only = attend(three_keys(-kInf, 2, -kInf), {true, false, true});
  CHECK(only.values.out.data[0] == 0);
  CHECK(only.values.lse.data[0] == -kInf);
}

TEST_CASE("reference: a kept NaN or +inf makes its row NaN; a kept -inf has weight 0") {
  for (const double bad : {kNan, kInf}) {
    const Reference reference = attend(three_keys(1, bad, 3), {true, true, true});
    CHECK(std::isnan(reference.values.out.data[0]));
    CHECK(std::isnan(reference.values.lse.data[0]));
  }
  const Reference all = attend(three_keys(kNan, kNan, kNan), {true, true, true});
  CHECK(std::isnan(all.values.out.data[0]));
  const Reference reference = attend(three_keys(0, -kInf, 0), {true, true, true});
  CHECK_THAT(reference.values.out.data[0], Catch::Matchers::WithinRel(101 / 2.0, 1e-14));
}

TEST_CASE("reference: scores of a thousand neither overflow nor vanish") {
  const Reference reference = attend(three_keys(1000, 1000, -1000), {true, true, true});
  CHECK_THAT(reference.values.out.data[0], Catch::Matchers::WithinRel(11 / 2.0, 1e-12));
  CHECK_THAT(reference.values.lse.data[0], Catch::Matchers::WithinRel(1000 + std::log(2.0), 1e-14));
}

TEST_CASE(
    "reference: query heads share kv heads in groups, and k and v of batch 1 serve every batch") {
  DenseProblem problem;
  problem.q = Values::zeros(2, 4, 1, 1);
  problem.k = Values::zeros(1, 2, 1, 1);
  problem.v = {1, 2, 1, 1, {5.0, 7.0}};
  const Reference reference = attend(problem, {true});
  CHECK(reference.values.out.data == std::vector<double>{5, 5, 7, 7, 5, 5, 7, 7});
}

TEST_CASE("naive: f32 is plain float arithmetic, 16 bits round S, P and out") {
  const DenseProblem problem = three_keys(0.1, 0.2, 0.3);
  const auto naive = [&](DType dtype, DType out_dtype) {
    return naive_attention(problem, keeping<float>({true, true, true}), dtype, out_dtype,
                           ThreadPool::shared())
        .out.data[0];
  };
  const double exact = attend(problem, {true, true, true}).values.out.data[0];
  CHECK(std::fabs(naive(f32, f32) - exact) < 1e-5);
  CHECK(naive(f32, f32) != exact);
  CHECK(std::fabs(naive(bf16, f32) - exact) > 1e-4);  // P is rounded to 8 bits
  CHECK(std::fabs(naive(bf16, f32) - exact) < 0.3);
  CHECK(naive(bf16, bf16) == std::round(naive(bf16, bf16) * 4) / 4);  // spacing 0.25 in [32, 64)
}

TEST_CASE("naive: a row with nothing kept is 0, and a dropped NaN does not reach it") {
  DenseProblem problem = three_keys(1, kNan, 3);
  problem.v.data[1] = kNan;
  const auto naive = [&](const std::vector<bool>& kept) {
    return naive_attention(problem, keeping<float>(kept), bf16, bf16, ThreadPool::shared())
        .out.data[0];
  };
  CHECK(naive({false, false, false}) == 0);
  CHECK(std::isfinite(naive({true, false, true})));
}
