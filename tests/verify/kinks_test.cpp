#include "verify/kinks.hpp"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/gradients.hpp"
#include "verify/problem.hpp"
#include "verify/random.hpp"

namespace {

using namespace tilewright;
using Verdicts = std::map<std::string, verify::GradientVerdict>;

constexpr std::int64_t kWidth = 16;

Spec spec_of(std::string score_mod) {
  const bool has_bias = score_mod.find("bias") != std::string::npos;
  Spec spec{.dtype = f32,
            .head_dim = kWidth,
            .score_mod = std::move(score_mod),
            .outputs = {.lse = true},
            .gradients = {"q", "k", "v"}};
  spec.scale = 1.0;
  spec.buffers["bias"] = {.dtype = f32, .shape = {1}};
  if (has_bias) spec.gradients.emplace_back("bias");
  if (!has_bias) spec.buffers.clear();
  return spec;
}

// One row and two columns, the first of which has a score of a chosen size.
struct Call {
  explicit Call(float first_score) {
    verify::Random random(3, "kinks");
    for (Tensor* const tensor : {&v, &dout}) {
      for (std::int64_t i = 0; i < tensor->numel(); ++i) {
        write_element(tensor->data(), f32, i, random.normal());
      }
    }
    // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which float32 loses where it rounds the product.
    const float most = 1 + 0x1p-12F, rest = 1 + 0x1p-11F;
    float* const of_q = static_cast<float*>(q.data());
    float* const of_k = static_cast<float*>(k.data());
    of_q[0] = of_k[0] = most;
    of_q[1] = of_q[2] = 1;
    of_k[1] = -rest;
    of_k[2] = first_score;
    of_k[kWidth] = 0.75F;
  }

  // The gradients that kernels of one spec compute, judged as those of another one.
  Verdicts judge(const Spec& computed, const Spec& meant) {
    const Attention attention(computed, {.device = Device::cpu()});
    verify::Problem problem{.shape = {.q_len = 1, .kv_len = 2}, .q = q, .k = k, .v = v};
    if (!computed.buffers.empty()) problem.snippet.buffers.emplace("bias", bias);
    const Bindings bindings = attention.bind(problem.snippet);
    Tensor out = Tensor::zeros(computed.output_dtype(), {1, 1, 1, kWidth});
    Tensor lse = Tensor::zeros(f32, {1, 1, 1}), dq = Tensor::copy_of(q), dk = Tensor::copy_of(k),
           dv = Tensor::copy_of(v), d_bias = Tensor::zeros(f32, {1});
    Tensor rounded = Tensor::zeros(computed.output_dtype(), out.shape());
    for (std::int64_t i = 0; i < rounded.numel(); ++i) {
      write_element(rounded.data(), rounded.dtype(), i, read_element(dout.data(), f32, i));
    }
    attention.forward({.q = q, .k = k, .v = v, .out = out, .lse = lse}, bindings);
    GradientBuffers buffers;
    verify::GradientResults results{.dout = rounded, .out = out};
    results.gradients = {{"dq", dq}, {"dk", dk}, {"dv", dv}};
    if (!computed.buffers.empty()) {
      buffers.emplace("bias", d_bias);
      results.gradients.emplace("d_bias", d_bias);
    }
    attention.backward({.q = q,
                        .k = k,
                        .v = v,
                        .out = out,
                        .lse = lse,
                        .dout = rounded,
                        .dq = dq,
                        .dk = dk,
                        .dv = dv},
                       bindings, buffers);
    return verify::judge_gradients(meant, problem, results, {}, ThreadPool::shared());
  }

  Tensor q = Tensor::zeros(f32, {1, 1, 1, kWidth}), k = Tensor::zeros(f32, {1, 1, 2, kWidth});
  Tensor v = Tensor::zeros(f32, {1, 1, 2, kWidth}), dout = Tensor::zeros(f32, {1, 1, 1, kWidth});
  Tensor bias = Tensor::zeros(f32, {1});
};

bool all_ok(const Verdicts& verdicts) {
  for (const auto& [name, verdict] : verdicts) {
    for (const std::string& reason : verdict.reasons) UNSCOPED_INFO(reason);
    if (!verdict.ok) return false;
  }
  return true;
}

TEST_CASE("kinks: a score within rounding of one has either side's derivative, and no other") {
  for (const char* const meant : {"max(score, 0)", "score > 0 ? score : 0.0f",
                                  "clamp(score, 0, 10)", "min(-score, 0) * -1"}) {
    CAPTURE(meant);
    Call call(0);
    CHECK(all_ok(call.judge(spec_of(meant), spec_of(meant))));
    for (const char* const side : {"0.0f", "score", "score * 0.5f"}) {
      CAPTURE(side);
      const Spec computed =
          spec_of(std::string("if (kv_idx == 0) return ") + side + "; return " + meant + ";");
      CHECK(all_ok(call.judge(computed, spec_of(meant))));
    }
    const Spec other =
        spec_of(std::string("if (kv_idx == 0) return 3 * score; return ") + meant + ";");
    const Verdicts verdicts = call.judge(other, spec_of(meant));
    CHECK_FALSE(verdicts.at("dq").ok);
    CHECK_FALSE(verdicts.at("dk").ok);
    CHECK(verdicts.at("dv").ok);
  }
}

TEST_CASE("kinks: away from one there is one derivative") {
  Call call(0x1p-10F);
  const Spec meant = spec_of("max(score, 0)");
  CHECK(all_ok(call.judge(spec_of("score"), meant)));
  const Spec flat = spec_of("if (kv_idx == 0) return 0x1p-10f; return max(score, 0);");
  CHECK_FALSE(call.judge(flat, meant).at("dq").ok);
  const Spec smooth = spec_of("score + 0.5f * score * score");
  Call at_0(0);
  const Spec bent =
      spec_of("if (kv_idx == 0) return 1.01f * score; return score + 0.5f * score * score;");
  CHECK(all_ok(at_0.judge(smooth, smooth)));
  CHECK_FALSE(at_0.judge(bent, smooth).at("dq").ok);
}

template <typename Score>
verify::RowSlopes<Score> slopes_of(Score (*derivative)(Score)) {
  return {.slopes = [derivative](std::int64_t, std::int64_t, std::int64_t, const Score* scores,
                                 Score* slopes) {
    for (int c = 0; c < 64; ++c) slopes[c] = derivative(scores[c]);
  }};
}

// Of scores of 0, 0.25, 0.5, and so on, with e of the float32 rounding of each.
template <typename Derivative>
bool has_kinks(Derivative derivative) {
  std::vector<double> scores, errors;
  for (int c = 0; c < 64; ++c) {
    scores.push_back(c * 0.25);
    errors.push_back(0x1p-20 * scores.back() + 0x1p-24);
  }
  const verify::RowSlopes<double> in_double = slopes_of<double>(derivative);
  const verify::RowSlopes<float> in_float = slopes_of<float>(derivative);
  return verify::Kinks(in_double, in_float, scores.size()).look(0, 0, 0, scores, errors);
}

TEST_CASE("kinks: a derivative that cancels in float32 has none") {
  CHECK_FALSE(has_kinks([](auto x) { return 1 - std::tanh(x) * std::tanh(x); }));
  CHECK(has_kinks([](auto x) { return x > 7 ? x - x : x - x + 1; }));
}

TEST_CASE("kinks: gradients of buffers jump with it") {
  Call call(0);
  const Spec meant = spec_of("max(score, bias[0])");
  CHECK(all_ok(call.judge(meant, meant)));
  for (const char* const side : {"bias[0]", "score"}) {
    CAPTURE(side);
    const Spec computed =
        spec_of(std::string("if (kv_idx == 0) return ") + side + "; return max(score, bias[0]);");
    CHECK(all_ok(call.judge(computed, meant)));
  }
  const Spec other = spec_of("if (kv_idx == 0) return 3 * bias[0]; return max(score, bias[0]);");
  CHECK_FALSE(call.judge(other, meant).at("d_bias").ok);
}

TEST_CASE("gradients: of an out of few bits they are those of the stored out") {
  for (const DType dtype : {f16, bf16}) {
    Spec spec = spec_of("score * 2");
    spec.out_dtype = dtype;
    Call call(0.5F);
    CHECK(all_ok(call.judge(spec, spec)));
  }
}

}  // namespace
