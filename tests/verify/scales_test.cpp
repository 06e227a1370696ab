// Scales and sinks on a CPU, against the reference, and the reference against numbers worked out by
// hand.
#include <cmath>

#include "runtime/api/thread_pool.hpp"
#include "tests/support/scaled_calls.hpp"
#include "verify/naive.hpp"
#include "verify/reference.hpp"
#include "verify/scale_values.hpp"

using namespace tilewright;
using Catch::Matchers::WithinRel;

namespace {

// One query against two keys of scores ln 2 and ln 3 and values 1 and 10.
verify::DenseProblem two_keys(double sink) {
  return {.q = {1, 1, 1, 1, {1.0}},
          .k = {1, 1, 2, 1, {std::log(2.0), std::log(3.0)}},
          .v = {1, 1, 2, 1, {1.0, 10.0}},
          .scale = 1,
          .sink = verify::Values{1, 1, 1, 1, {sink}}};
}

template <typename Score>
verify::RowSnippets<Score> all_kept(bool kept = true) {
  return [kept](std::int64_t, std::int64_t, std::int64_t, const Score* scores, Score* modified,
                unsigned char* keep) {
    for (int i = 0; i < 2; ++i) {
      modified[i] = scores[i];
      keep[i] = kept;
    }
  };
}

}  // namespace

TEST_CASE("reference: a sink is a weight without a value") {
  const verify::DenseProblem problem = two_keys(std::log(5.0));
  const verify::AttentionValues values =
      verify::reference_attention(problem, all_kept<double>(), ThreadPool::shared()).values;
  CHECK_THAT(values.out.data[0], WithinRel(32.0 / 10, 1e-14));
  CHECK_THAT(values.lse.data[0], WithinRel(std::log(10.0), 1e-14));
  const verify::AttentionValues naive =
      verify::naive_attention(problem, all_kept<float>(), f32, f32, ThreadPool::shared());
  CHECK_THAT(naive.out.data[0], WithinRel(3.2, 1e-6));
}

TEST_CASE("reference: a row with nothing kept has its sink as lse") {
  const verify::AttentionValues values =
      verify::reference_attention(two_keys(0.5), all_kept<double>(false), ThreadPool::shared())
          .values;
  CHECK(values.out.data[0] == 0);
  CHECK(values.lse.data[0] == 0.5);
}

TEST_CASE("scales: q, k and v are multiplied by rows, but for new ones") {
  const Spec spec{.head_dim = 16, .q_scale = "2", .k_scale = "3", .v_scale = "5"};
  const verify::ScaleValues scales = [](SnippetKind kind, const abi::SnippetArguments&,
                                        std::int64_t, std::int64_t h, std::int64_t first,
                                        std::int64_t count, double* values) {
    const double base = kind == SnippetKind::q_scale ? 2 : kind == SnippetKind::k_scale ? 3 : 5;
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = base + static_cast<double>(10 * (first + i) + 100 * h);
    }
  };
  verify::DenseProblem problem = {
      .q = {1, 2, 2, 1, {1, 1, 1, 1}}, .k = {1, 1, 3, 1, {1, 1, 1}}, .v = {1, 1, 3, 1, {1, 1, 1}}};
  verify::apply_scales(spec, scales, {}, 0, 1, problem);
  CHECK(problem.q.data == std::vector<double>{2, 12, 102, 112});
  CHECK(problem.k.data == std::vector<double>{3, 13, 1});
  CHECK(problem.v.data == std::vector<double>{5, 15, 1});
  CHECK_FALSE(problem.sink.has_value());
}

TEST_CASE("scales on a CPU: every kind in every layout") {
  scaled_calls::check_layouts(Device::cpu());
}

TEST_CASE("scales on a CPU: float32") {
  scaled_calls::check_float32(Device::cpu());
}

TEST_CASE("scales on a CPU: exact answers") {
  scaled_calls::check_exact_answers(Device::cpu());
}
