// The rule for products in TF32.
#include <cmath>

#include "runtime/api/thread_pool.hpp"
#include "tests/support/catch.hpp"
#include "verify/fast_math.hpp"
#include "verify/judge.hpp"
#include "verify/naive.hpp"
#include "verify/parts.hpp"

using namespace tilewright;
using namespace tilewright::verify;

namespace {

Values one_row(std::vector<double> data) {
  Values values = Values::zeros(1, 1, 1, static_cast<std::int64_t>(data.size()));
  values.data = std::move(data);
  return values;
}

// One key: P is 1, out is v as the products see it, and lse is the score.
AttentionValues naive_of(double q, double k, double v, F32Products products) {
  DenseProblem problem{.q = one_row({q}), .k = one_row({k}), .v = one_row({v}), .scale = 1};
  round_to_products(products, problem);
  const RowSnippets<float> all = [](std::int64_t, std::int64_t, std::int64_t, const float* scores,
                                    float* modified, unsigned char* keep) {
    modified[0] = scores[0];
    keep[0] = 1;
  };
  return naive_attention(problem, all, f32, f32, ThreadPool::shared(), products);
}

}  // namespace

TEST_CASE("tf32: naive rounds to eleven bits, ties away from zero") {
  const double unit = 0x1p-10;  // of the last of eleven bits, at 1
  const auto out = [&](double v) { return naive_of(1, 1, v, F32Products::tf32).out.data[0]; };
  CHECK(out(1 + unit) == 1 + unit);
  CHECK(out(1 + 0.49 * unit) == 1);
  CHECK(out(1 + 0.5 * unit) == 1 + unit);
  CHECK(out(-1 - 0.5 * unit) == -1 - unit);
  CHECK(out(0x1.ffcp0 + 0.25 * unit) == 2 - unit);
  CHECK(out(0x1.ffep0) == 2);
  CHECK(std::isinf(out(INFINITY)));
  CHECK(std::isnan(out(NAN)));
  CHECK(naive_of(1, 1, 1 + 0.49 * unit, F32Products::ieee).out.data[0] ==
        static_cast<float>(1 + 0.49 * unit));
}

TEST_CASE("tf32: lse is judged by the error of naive's") {
  const double q = 3 + 0x1p-12;
  const AttentionValues naive = naive_of(q, 1, 1, F32Products::tf32);
  REQUIRE(naive.lse.data.size() == 1);
  CHECK(naive.lse.data[0] == 3);
  const AttentionValues reference{.out = one_row({1}), .lse = one_row({q})};
  const Rule rule{.dtype = f32, .out_dtype = f32, .products = F32Products::tf32};
  const auto with_lse = [&](double lse) {
    return judge({.out = one_row({1}), .lse = one_row({lse})}, reference, naive, rule);
  };
  CHECK(with_lse(3).naive_lse == 0x1p-12);
  CHECK(with_lse(3).ok);
  CHECK(with_lse(q + 0x1p-11).ok);
  CHECK_FALSE(with_lse(q + 0x1p-10).ok);
}

TEST_CASE("tf32: max_scores are judged by the error of naive's, not by that of its lse") {
  const double q = 3 + 0x1p-12;
  AttentionValues naive = naive_of(q, 1, 1, F32Products::tf32);
  REQUIRE(naive.max_scores.data.size() == 1);
  CHECK(naive.max_scores.data[0] == 3);
  naive.lse = one_row({q});
  const AttentionValues reference{
      .out = one_row({1}), .lse = one_row({q}), .max_scores = one_row({q})};
  const Rule rule{.dtype = f32, .out_dtype = f32, .products = F32Products::tf32};
  const auto with_max = [&](double max) {
    return judge({.out = one_row({1}), .lse = one_row({q}), .max_scores = one_row({max})},
                 reference, naive, rule);
  };
  CHECK(with_max(3).naive_max_scores == 0x1p-12);
  CHECK(with_max(3).naive_lse == 0);
  CHECK(with_max(3).ok);
  CHECK(with_max(q + 0x1p-11).ok);
  CHECK_FALSE(with_max(q + 0x1p-10).ok);
}

TEST_CASE("tf32: two units of eleven bits are allowed, and of 24 without it") {
  const AttentionValues exact{.out = one_row({1}), .lse = {}};
  Rule rule{.dtype = f32, .out_dtype = f32, .products = F32Products::tf32};
  const auto with_out = [&](double out) {
    return judge({.out = one_row({out}), .lse = {}}, exact, exact, rule).ok;
  };
  CHECK(with_out(1 + 0.2 * 0x1p-10));  // as the RMS error allows
  CHECK_FALSE(with_out(1 + 2.1 * 0x1p-10));
  rule.products = F32Products::ieee;
  CHECK_FALSE(with_out(1 + 0.2 * 0x1p-10));
}

TEST_CASE("tf32: GPUs alone multiply so") {
  Spec spec{.dtype = f32, .head_dim = 64};
  CHECK_FALSE(multiplies_tf32(spec, Device::cpu()));
  spec.f32_products = F32Products::tf32;
  CHECK_FALSE(multiplies_tf32(spec, Device::cpu()));
}

TEST_CASE("tf32: stored numbers are rounded, and then multiplied by their scales") {
  const Spec spec{.dtype = f32, .head_dim = 1, .k_scale = "0.03", .v_scale = "1"};
  float q = 1 + 0x1p-12F, k = 7, v = 1;
  const std::vector<std::int64_t> one = {1, 1, 1, 1};
  const Problem problem{
      .shape = {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 1, .kv_len = 1},
      .q = TensorView::contiguous(&q, f32, one),
      .k = TensorView::contiguous(&k, f32, one),
      .v = TensorView::contiguous(&v, f32, one)};
  const ScaleValues scales = [](SnippetKind kind, const abi::SnippetArguments&, std::int64_t,
                                std::int64_t, std::int64_t, std::int64_t, double* values) {
    values[0] = kind == SnippetKind::k_scale ? 0.03 : 1;
  };
  const Parts parts(spec, problem, SnippetValues::Extents::physical, scales);
  const DenseProblem seen = parts.read(parts.pieces().front(), F32Products::tf32);
  CHECK(seen.q.data.front() == 1);
  CHECK(seen.k.data.front() == 7 * 0.03);
  CHECK(parts.read(parts.pieces().front()).q.data.front() == 1 + 0x1p-12);
}
