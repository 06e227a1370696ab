// Dropout on a CPU: its draws one by one, calls against the reference, and the reference against
// numbers worked out by hand.
#include "tests/support/dropout.hpp"

#include <cmath>
#include <limits>

#include "runtime/api/thread_pool.hpp"
#include "tests/support/dropout_gradients.hpp"
#include "verify/dropout.hpp"
#include "verify/naive.hpp"
#include "verify/reference.hpp"

using namespace tilewright;
using Catch::Matchers::WithinRel;

namespace {

template <typename Score>
verify::RowSnippets<Score> all_kept() {
  return [](std::int64_t, std::int64_t, std::int64_t, const Score* scores, Score* modified,
            unsigned char* keep) {
    std::copy_n(scores, 2, modified);
    std::fill_n(keep, 2, static_cast<unsigned char>(1));
  };
}

// The first seed that keeps element 1 of a row alone.
std::uint64_t seed_of_second() {
  std::uint64_t seed = 0;
  while (dropout_calls::keeps(seed, 0.5f, 0, 0, 0, 0) ||
         !dropout_calls::keeps(seed, 0.5f, 0, 0, 0, 1)) {
    ++seed;
  }
  return seed;
}

}  // namespace

TEST_CASE("reference: dropout drops weights after the softmax") {
  // One query against two keys of scores ln 2 and ln 3 and values 1 and 10.
  verify::DenseProblem problem = {.q = {1, 1, 1, 1, {1.0}},
                                  .k = {1, 1, 2, 1, {std::log(2.0), std::log(3.0)}},
                                  .v = {1, 1, 2, 1, {1.0, 10.0}},
                                  .scale = 1,
                                  .wants_weights = true};
  problem.dropout = verify::DropoutDraws{.p = {0.5}, .seed = seed_of_second()};
  const verify::AttentionValues values =
      verify::reference_attention(problem, all_kept<double>(), ThreadPool::shared()).values;
  CHECK_THAT(values.out.data[0], WithinRel(0.6 * 2 * 10, 1e-14));
  CHECK_THAT(values.lse.data[0], WithinRel(std::log(5.0), 1e-14));
  CHECK(values.weights.data[0] == 0);
  CHECK_THAT(values.weights.data[1], WithinRel(1.2, 1e-14));
  const verify::AttentionValues naive =
      verify::naive_attention(problem, all_kept<float>(), f32, f32, ThreadPool::shared());
  CHECK_THAT(naive.out.data[0], WithinRel(12.0, 1e-6));
  for (const double all : {1.0, std::numeric_limits<double>::quiet_NaN()}) {
    problem.dropout->p = {all};
    CHECK(verify::reference_attention(problem, all_kept<double>(), ThreadPool::shared())
              .values.out.data[0] == 0);
  }
}

TEST_CASE("reference: its draws are those of Philox") {
  const verify::DropoutDraws draws{
      .p = {0.3f, 0.7f}, .seed = 0xfedcba9876543210, .first_b = 5, .q_offset = -9, .kv_offset = 2};
  for (std::int64_t i = 0; i < 3000; ++i) {
    const std::int64_t b = i % 3, h = i % 2, row = i / 7 % 50, column = i % 211;
    REQUIRE(draws.keeps(b, h, row, column) ==
            dropout_calls::keeps(draws.seed, static_cast<float>(draws.p[static_cast<size_t>(h)]),
                                 b + 5, h, row - 9, column + 2));
  }
}

TEST_CASE("dropout on a CPU: the draws of dense calls") {
  dropout_calls::check_draws(Device::cpu());
}

TEST_CASE("dropout on a CPU: the draws of packed calls") {
  dropout_calls::check_packed_draws(Device::cpu(), f32);
  dropout_calls::check_packed_draws(Device::cpu(), bf16);
}

TEST_CASE("dropout on a CPU: calls against the reference") {
  for (const std::string& fields : dropout_calls::forward_fields()) {
    CAPTURE(fields);
    dropout_calls::check(dropout_calls::spec_of(fields), Device::cpu());
  }
}

TEST_CASE("dropout on a CPU: a probability of 0 changes nothing") {
  dropout_calls::check_no_dropout(Device::cpu(), R"("dtype": "bf16")");
  dropout_calls::check_no_dropout(Device::cpu(),
                                  R"("dtype": "f32", "mask_mod": "q_idx >= kv_idx")");
}

TEST_CASE("dropout on a CPU: a seed of 64 bits comes in a buffer") {
  dropout_calls::check_seed_buffer(Device::cpu());
}

TEST_CASE("dropout on a CPU: gradients against the reference") {
  for (const std::string& fields : dropout_calls::gradient_fields()) {
    CAPTURE(fields);
    dropout_calls::check_gradients(Device::cpu(), fields);
  }
  for (const DType dtype : {f32, bf16}) {
    const std::string fields = R"("gradients": ["q", "k", "v"], "dropout": "0.5", "dtype": ")";
    dropout_calls::check_gradients(Device::cpu(), fields + std::string(to_string(dtype)) + '"', 3);
  }
}

TEST_CASE("dropout on a CPU: the output weights") {
  for (const std::string& fields : dropout_calls::forward_fields()) {
    CAPTURE(fields);
    if (fields.find("packed") == std::string::npos)
      dropout_calls::check_weights(Device::cpu(), fields);
  }
}
