// The output weights on a CPU, against the reference and against numbers that follow by hand.
#include "tests/support/weights.hpp"

#include <array>
#include <cmath>

#include "tests/support/refusal.hpp"
#include "verify/judge.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

// One head, two rows of q, three of k; q.k is the element of k, times 2 in row 1.
struct SmallCall {
  std::vector<float> q = std::vector<float>(2 * 16), k = std::vector<float>(3 * 16), v = k;
  std::vector<float> out = q;
  std::array<float, 2> lse = {};
  std::array<float, 6> weights = {7, 7, 7, 7, 7, 7};

  SmallCall() {
    q[0] = 1, q[16] = 2;
    k[0] = std::log(2.0f), k[16] = 0, k[32] = std::log(5.0f);
  }

  ForwardTensors tensors() {
    return {.q = TensorView::contiguous(q.data(), f32, {1, 1, 2, 16}),
            .k = TensorView::contiguous(k.data(), f32, {1, 1, 3, 16}),
            .v = TensorView::contiguous(v.data(), f32, {1, 1, 3, 16}),
            .out = TensorView::contiguous(out.data(), f32, {1, 1, 2, 16}),
            .lse = TensorView::contiguous(lse.data(), f32, {1, 1, 2}),
            .weights = TensorView::contiguous(weights.data(), f32, {1, 1, 2, 3})};
  }
};

Attention small_attention(std::string mask_mod, std::string score_mod = {},
                          Outputs outputs = {.lse = true, .weights = true}) {
  return Attention({.dtype = f32,
                    .head_dim = 16,
                    .scale = 1.0,
                    .score_mod = std::move(score_mod),
                    .mask_mod = std::move(mask_mod),
                    .outputs = outputs},
                   {.device = Device::cpu()});
}

void check_weights(const std::array<float, 6>& got, const std::array<double, 6>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);
    CHECK(std::fabs(got[i] - wanted[i]) < 1e-6);
    CHECK((got[i] == 0) == (wanted[i] == 0));
  }
}

}  // namespace

TEST_CASE("weights: equal to the reference in each dtype and layout") {
  const std::string dtype = GENERATE("f32", "bf16");
  for (const std::string& fields : weights::dense_fields()) {
    CAPTURE(dtype, fields);
    const Spec spec = weights::spec_of("\"dtype\": \"" + dtype + "\", " + fields);
    weights::check_dense(spec, Device::cpu());
    weights::check_padded(spec, Device::cpu());
  }
  weights::check_dense(weights::spec_of(R"("dtype": "f16", "kv_dtype": "f8e4m3", "out_dtype": "f32",
                                           "k_scale": "of_h[h_kv]", "v_scale": "2")"),
                       Device::cpu());
}

TEST_CASE("weights: 0 where dropped, and in a row with nothing kept") {
  SmallCall call;
  small_attention("").forward(call.tensors());
  check_weights(call.weights, {2 / 8.0, 1 / 8.0, 5 / 8.0, 4 / 30.0, 1 / 30.0, 25 / 30.0});
  const Attention masked = small_attention("kv_idx != 1 && q_idx == 0");
  masked.forward(call.tensors(), masked.block_mask({.q_len = 2, .kv_len = 3}));
  check_weights(call.weights, {2 / 7.0, 0, 5 / 7.0, 0, 0, 0});
}

TEST_CASE("weights: a score of -infinity weighs 0, and NaN spreads over the kept ones of its row") {
  SmallCall call;
  small_attention("", "kv_idx == 2 || q_idx == 1 ? -INFINITY : score").forward(call.tensors());
  check_weights(call.weights, {2 / 3.0, 1 / 3.0, 0, 0, 0, 0});
  call.k[16] = NAN;
  const Attention masked = small_attention("kv_idx != 0", "kv_idx == 2 ? -INFINITY : score");
  masked.forward(call.tensors(), masked.block_mask({.q_len = 2, .kv_len = 3}));
  for (const std::size_t row : {0, 3}) {
    CHECK(call.weights[row] == 0);
    CHECK(std::isnan(call.weights[row + 1]));
    CHECK(call.weights[row + 2] == 0);
  }
}

// What a caller's mask drops, mask_mod does not know.
TEST_CASE("weights: a block mask from lists") {
  SmallCall call;
  const Attention attention({.dtype = f32,
                             .head_dim = 16,
                             .scale = 1.0,
                             .block = {16, 16},
                             .outputs = {.lse = true, .weights = true}},
                            {.device = Device::cpu(), .takes_block_mask = true});
  std::vector<float> k(20 * 16), v = k, weights(2 * 20, 7);
  k[0] = std::log(3.0f);
  ForwardTensors tensors = call.tensors();
  tensors.k = TensorView::contiguous(k.data(), f32, {1, 1, 20, 16});
  tensors.v = TensorView::contiguous(v.data(), f32, {1, 1, 20, 16});
  tensors.weights = TensorView::contiguous(weights.data(), f32, {1, 1, 2, 20});
  const BlockMask mask(
      attention.mask_fingerprint({.q_len = 2, .kv_len = 20}),
      {.row_offsets = {0, 0}, .indices = {}, .full_row_offsets = {0, 1}, .full_indices = {0}},
      "lists", 0);
  attention.forward(tensors, mask);
  CHECK(std::fabs(weights[0] - 3 / 18.0f) < 1e-6);
  CHECK(std::fabs(weights[15] - 1 / 18.0f) < 1e-6);
  for (std::size_t column = 16; column < 20; ++column) CHECK(weights[column] == 0);
}

TEST_CASE("weights: a tensor that is missing, extra, of another shape or shared is refused") {
  SmallCall call;
  const Attention attention = small_attention("");
  const auto refusal = [](const Attention& of, const ForwardTensors& tensors) {
    return test::refusal([&] { of.forward(tensors); });
  };
  ForwardTensors tensors = call.tensors();
  tensors.weights.reset();
  CHECK_THAT(refusal(attention, tensors), ContainsSubstring("weights is missing"));
  CHECK_THAT(refusal(small_attention("", "", {.lse = true}), call.tensors()),
             ContainsSubstring("weights was given"));
  tensors.weights = TensorView::contiguous(call.weights.data(), f32, {1, 1, 3, 2});
  CHECK_THAT(refusal(attention, tensors), ContainsSubstring("weights does not fit"));
  tensors.weights = TensorView::contiguous(call.k.data(), f32, {1, 1, 2, 3});
  CHECK_THAT(refusal(attention, tensors), ContainsSubstring("weights overlaps k"));
  tensors = call.tensors();
  tensors.out = tensors.q;  // which the weights' kernel reads after out is written
  CHECK_THAT(refusal(attention, tensors), ContainsSubstring("out overlaps q"));
}

TEST_CASE("weights: specs without lse and in packed layouts are refused with what to write") {
  CHECK_THAT(test::refusal([] {
               spec_from_json(R"({"dtype": "f32", "head_dim": 32, "outputs": ["out", "weights"]})",
                              "a");
             }),
             ContainsSubstring("made from lse"));
  CHECK_THAT(
      test::refusal([] {
        spec_from_json(
            R"({"dtype": "f32", "head_dim": 32, "layout": "packed", "outputs": ["out", "lse", "weights"]})",
            "a");
      }),
      ContainsSubstring("packed or paged"));
}

TEST_CASE("weights: the judge holds them to out's bounds, and those of dropped elements to 0") {
  using verify::Values;
  Values out = Values::zeros(1, 1, 1, 1), lse = out, kept = Values::zeros(1, 1, 1, 3);
  kept.data = {0.75, 0.25, 0};
  const verify::AttentionValues reference{.out = out, .lse = lse, .weights = kept};
  const verify::Rule rule{.dtype = f32};
  CHECK(verify::judge(reference, reference, reference, rule).ok);
  verify::AttentionValues wrong = reference;
  wrong.weights.data[1] = 0.2502;
  const verify::Verdict verdict = verify::judge(wrong, reference, reference, rule);
  CHECK(!verdict.ok);
  REQUIRE(verdict.first_bad);
  CHECK(verdict.first_bad->tensor == "weights");
  CHECK(verdict.first_bad->column == 1);
  wrong.weights.data = {0.75, 0.25, 1e-12};
  CHECK(!verify::judge(wrong, reference, reference, rule).ok);
}
