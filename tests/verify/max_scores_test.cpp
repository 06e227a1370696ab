// The output max_scores on a CPU, against the reference and against numbers that follow by hand.
#include "tests/support/max_scores.hpp"

#include <array>
#include <cmath>

#include "base/error.hpp"
#include "verify/judge.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One head, two rows of q, three of k; q.k is the element of k, times 2 in row 1.
struct SmallCall {
  std::vector<float> q = std::vector<float>(2 * 16), k = std::vector<float>(3 * 16), v = k;
  std::vector<float> out = q;
  std::array<float, 2> rows = {7, 7};

  SmallCall() {
    q[0] = 1, q[16] = 2;
    k[0] = -4, k[16] = 0.5, k[32] = -1;
  }

  ForwardTensors tensors() {
    return {.q = TensorView::contiguous(q.data(), f32, {1, 1, 2, 16}),
            .k = TensorView::contiguous(k.data(), f32, {1, 1, 3, 16}),
            .v = TensorView::contiguous(v.data(), f32, {1, 1, 3, 16}),
            .out = TensorView::contiguous(out.data(), f32, {1, 1, 2, 16}),
            .max_scores = TensorView::contiguous(rows.data(), f32, {1, 1, 2})};
  }
};

Attention small_attention(std::string mask_mod, Outputs outputs = {.max_scores = true}) {
  return Attention({.dtype = f32,
                    .head_dim = 16,
                    .scale = 1.0,
                    .score_mod = "score + 3",
                    .mask_mod = std::move(mask_mod),
                    .outputs = outputs},
                   {.device = Device::cpu()});
}

std::string refusal(const Attention& attention, const ForwardTensors& tensors) {
  try {
    attention.forward(tensors);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("max_scores: equal to the reference in each dtype and layout") {
  const std::string dtype = GENERATE("f32", "bf16");
  for (const std::string& fields : max_scores::dense_fields()) {
    CAPTURE(dtype, fields);
    max_scores::check_dense(max_scores::spec_of("\"dtype\": \"" + dtype + "\", " + fields),
                            Device::cpu());
  }
  for (const std::string& fields : max_scores::sequence_fields()) {
    CAPTURE(dtype, fields);
    max_scores::check_sequences(max_scores::spec_of("\"dtype\": \"" + dtype + "\", " + fields),
                                Device::cpu());
  }
}

TEST_CASE("max_scores: after score_mod, of kept scores, and -inf of a row without") {
  SmallCall call;
  small_attention("").forward(call.tensors());
  CHECK(call.rows == std::array{3.5f, 4.0f});
  const Attention masked = small_attention("kv_idx != 1 && q_idx == 0");
  masked.forward(call.tensors(), masked.block_mask({.q_len = 2, .kv_len = 3}));
  CHECK(call.rows == std::array{2.0f, -kInfinity});
  call.k[16] = NAN;
  small_attention("").forward(call.tensors());
  CHECK((std::isnan(call.rows[0]) && std::isnan(call.rows[1])));
}

TEST_CASE("max_scores: a tensor that is missing, extra, of another shape or shared is refused") {
  SmallCall call;
  const Attention attention = small_attention("");
  ForwardTensors tensors = call.tensors();
  tensors.max_scores.reset();
  CHECK_THAT(refusal(attention, tensors), ContainsSubstring("max_scores is missing"));
  CHECK_THAT(refusal(small_attention("", {}), call.tensors()),
             ContainsSubstring("max_scores was given"));
  tensors.max_scores = TensorView::contiguous(call.rows.data(), f32, {1, 2, 1});
  CHECK_THAT(refusal(attention, tensors), ContainsSubstring("max_scores does not fit"));
  tensors.max_scores = TensorView::contiguous(call.out.data(), f32, {1, 1, 2});
  CHECK_THAT(refusal(attention, tensors), ContainsSubstring("max_scores"));
  tensors = call.tensors();
  tensors.lse = tensors.max_scores;
  CHECK_THAT(refusal(small_attention("", {.lse = true, .max_scores = true}), tensors),
             ContainsSubstring("lse"));
}

TEST_CASE("max_scores: the judge holds them to lse's bound") {
  using verify::Values;
  Values out = Values::zeros(1, 1, 2, 1), rows = out;
  rows.data = {1.0, -kInfinity};
  Values wrong = rows;
  wrong.data[0] = 1.001;
  const verify::AttentionValues reference{.out = out, .max_scores = rows};
  const verify::Rule rule{.dtype = f32};
  CHECK(verify::judge(reference, reference, reference, rule).ok);
  const verify::Verdict verdict =
      verify::judge({.out = out, .max_scores = wrong}, reference, reference, rule);
  CHECK(!verdict.ok);
  REQUIRE(verdict.first_bad);
  CHECK(verdict.first_bad->tensor == "max_scores");
  wrong = rows;
  wrong.data[1] = 0;
  CHECK(!verify::judge({.out = out, .max_scores = wrong}, reference, reference, rule).ok);
}
