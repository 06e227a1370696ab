#include "generator/snippet/difference_value.hpp"

#include <optional>
#include <string>

#include "generator/render/kernel_source.hpp"
#include "generator/snippet/parse.hpp"
#include "generator/snippet/print.hpp"
#include "generator/snippet/spec_facts.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

Spec spec() {
  Spec spec{.dtype = DType::bf16, .head_dim = 64};
  spec.buffers["bias"] = {.dtype = DType::f32, .shape = {FreeDim{}}};
  spec.buffers["other"] = {.dtype = DType::f16, .shape = {NamedDim::num_q_heads, FreeDim{}}};
  spec.buffers["slopes"] = {.dtype = DType::f32, .shape = {NamedDim::num_q_heads}};
  spec.buffers["counts"] = {.dtype = DType::i32, .shape = {FreeDim{}}};
  spec.buffers["trusted"] = {.dtype = DType::f32, .shape = {FreeDim{}}, .bounds = Bounds::trusted};
  spec.scalars["gain"] = {.dtype = DType::f32};
  return spec;
}

// "what stands for it in the rest <- the value"; empty if there is none.
std::string found(const std::string& text, const Spec& spec) {
  const snippet::SnippetTree tree = snippet::parse(SnippetKind::score_mod, text, spec);
  const auto value = snippet::difference_value(tree, spec);
  return value ? to_text(value->rest) + " <- " + to_text(value->value) : "";
}
std::string found(const std::string& text) {
  return found(text, spec());
}

}  // namespace

TEST_CASE("difference values: reads and costly functions of the difference alone") {
  CHECK(found("score + bias[kv_idx - q_idx + q_len - 1]") ==
        "score + tw_by_difference <- bias[kv_idx - q_idx + q_len - 1]");
  CHECK(found("score + gain * other(h, clamp(q_idx - kv_idx, 0, 9))") ==
        "score + tw_by_difference <- gain * other(h, clamp(q_idx - kv_idx, 0, 9))");
  CHECK(found("score - slopes[h] * log(1.0 + abs(q_idx - kv_idx))") ==
        "score - tw_by_difference <- slopes[h] * log(1.0 + abs(q_idx - kv_idx))");
  CHECK(found("score / (1.0 + abs(q_idx - kv_idx) / gain)") ==
        "score / tw_by_difference <- 1.0 + abs(q_idx - kv_idx) / gain");
  CHECK(found("20.0 * tanh((score + bias[kv_idx - q_idx]) / 20.0)") ==
        "20.0 * tanh((score + tw_by_difference) / 20.0) <- bias[kv_idx - q_idx]");
  CHECK(
      found("kv_idx > q_idx ? score : score + (kv_idx - q_idx < 5 ? bias[kv_idx - q_idx] : 0.0)") ==
      "(kv_idx > q_idx) ? score : score + tw_by_difference <- "
      "(kv_idx - q_idx < 5) ? bias[kv_idx - q_idx] : 0.0");
}

TEST_CASE(
    "difference values: values contain locals, and score_mod loses locals that nothing else uses") {
  CHECK(found("int d = kv_idx - q_idx; int n = abs(d); float big = log(float(max(n, 1))); return "
              "score + other(h, n < 8 ? n : int(big));") ==
        "score + tw_by_difference <- other(h, (abs(kv_idx - q_idx) < 8) ? abs(kv_idx - q_idx) : "
        "int(log(max(abs(kv_idx - q_idx), 1))))");
  CHECK(found("float x = bias[kv_idx - q_idx]; return score * x + x;") ==
        "score * tw_by_difference + tw_by_difference <- bias[kv_idx - q_idx]");
}

TEST_CASE("difference values: of several the one that reads, or their sum") {
  CHECK(found("score * exp(0.1 * (kv_idx - q_idx)) + bias[kv_idx - q_idx]") ==
        "score * exp(0.1 * (kv_idx - q_idx)) + tw_by_difference <- bias[kv_idx - q_idx]");
  const std::string two =
      "score - bias[kv_idx - q_idx] + slopes[h] * (kv_idx - q_idx) - "
      "other(h, q_idx - kv_idx)";
  CHECK(found(two) ==
        "score + slopes[h] * (kv_idx - q_idx) - tw_by_difference <- "
        "bias[kv_idx - q_idx] + other(h, q_idx - kv_idx)");
  // As it is written, rounding and all.
  Spec precise = spec();
  precise.precise_math = true;
  CHECK(found(two, precise).find("- tw_by_difference") != std::string::npos);
  CHECK(found(two, precise).find(" + other") == std::string::npos);
}

TEST_CASE("difference values: there is none") {
  for (const char* const text :
       {"score", "score + slopes[h] * (kv_idx - q_idx)", "score + slopes[h]",
        "score + bias[kv_idx]", "score + bias[kv_idx + q_idx]", "score + bias[kv_idx - 2 * q_idx]",
        "score + other(q_idx, kv_idx - q_idx)", "score + exp(0.1 * h)",
        "score + bias[int(score) + kv_idx - q_idx]", "score + tanh(score * (kv_idx - q_idx))",
        "score + trusted[kv_idx - q_idx]", "score + bias[(kv_idx - q_idx) % counts[0]]",
        "score + abs(kv_idx - q_idx) / 4.0",
        "int i = 0; while (i < 2) i = i + 1; return score + bias[kv_idx - q_idx + i];",
        "auto f = [=](int i) { return bias[i]; }; return score + f(kv_idx - q_idx);",
        "const int& k = kv_idx; return score + bias[k - q_idx];",
        "int b = 0; if (score > 0.0) b = 1; return score + bias[kv_idx - q_idx + b];",
        "int q_len = q_idx; return score + bias[kv_idx - q_idx + q_len];",
        "int d = kv_idx - q_idx; if (score > 0.0) d = d + 1; return score + bias[d];"}) {
    INFO(text);
    CHECK(found(text).empty());
  }
  Spec packed = spec();
  packed.layout = Layout::packed;
  CHECK(found("score + bias[kv_token - q_token]", packed).empty());
}

TEST_CASE("difference values: Hopper's kernels take them where they have room") {
  const Target hopper = Target::parse("sm_90a");
  Spec with = spec();
  with.score_mod = "score + bias[clamp(kv_idx - q_idx, -9, 9) + 9]";
  with.outputs.lse = true;
  with.gradients = {"q", "k", "v"};
  const auto forward_bytes = [&] {
    const SpecFacts facts(with);
    const KernelVariant kernel = forward_kernel(with, hopper);
    return difference_bytes(facts, hopper, kernel,
                            default_hopper_tactic(facts, hopper, kernel).value());
  };
  CHECK(forward_bytes() == 0);  // where out is staged
  CHECK(hopper_backward_tactic(SpecFacts(with), hopper, backward_kernel(with))
            .value()
            .difference_bytes == 8 * warp_difference_bytes(128));
  CHECK(warp_difference_bytes(128) == 2 * 144 * 4);
  CHECK(warp_difference_bytes(80) == 2 * 112 * 4);
  with.head_dim = 256;
  CHECK(!forward_bytes());
  with.head_dim = 192;
  CHECK(forward_bytes() == 8 * warp_difference_bytes(112));
}
