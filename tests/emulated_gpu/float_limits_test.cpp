// Where float32 or out's dtype ends, on kernels for GPUs: infinities in v with an out of f8e4m3,
// scales that are not finite, scores and sums that overflow. tests/cli/float_limits_test.cpp has
// the CPU's.

#include <functional>
#include <string>
#include <vector>

#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/limits.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

using namespace tilewright;

namespace {

constexpr Shape kShape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .q_len = 20, .kv_len = 30};
constexpr std::int64_t kDim = 64;

verify::Report check(Spec spec, const std::string& template_name,
                     const std::function<void(verify::Inputs&)>& change) {
  spec.head_dim = kDim;
  spec.outputs.lse = true;
  spec.tactic = TacticSpec{template_name, {}};
  verify::CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.check_undefined = false;
  verify::Inputs inputs = verify::random_inputs(spec, kShape, 3);
  change(inputs);
  return verify::Checker(spec, options).check(inputs.problem());
}

// Of head 0.
void multiply_row(Tensor& tensor, std::int64_t row, double factor) {
  for (std::int64_t i = row * kDim; i < (row + 1) * kDim; ++i) {
    const double value = read_element(tensor.data(), tensor.dtype(), i);
    write_element(tensor.data(), tensor.dtype(), i, factor * value);
  }
}

const std::vector<std::string> kNone;

}  // namespace

TEST_CASE("emulated GPU: infinities of v become the greatest number of an 8-bit out") {
  const std::string name = GENERATE(as<std::string>(), "hopper", "portable");
  const char* const mask = GENERATE("", "q_idx >= kv_idx");
  CAPTURE(name, mask);
  const verify::Report report =
      check({.dtype = bf16, .out_dtype = f8e4m3, .mask_mod = mask, .out_scale = "0.5f"}, name,
            [](verify::Inputs& inputs) {
              write_element(inputs.v.data(), bf16, 5, kInf);
              write_element(inputs.v.data(), bf16, 7 * kDim + 3, -kInf);
            });
  CHECK(report.reasons() == kNone);
  CHECK(report.verdict.bound_max < 2);
}

TEST_CASE("emulated GPU: what float32 does not hold, and scales that are not finite") {
  const std::string name = GENERATE(as<std::string>(), "hopper", "portable");
  CAPTURE(name);
  const verify::Report scores =
      check({.dtype = bf16}, name, [](verify::Inputs& inputs) { multiply_row(inputs.q, 3, 1e38); });
  CHECK(scores.reasons() == kNone);
  CHECK(scores.unjudged.overflow == kDim);
  const verify::Report sums = check({.dtype = bf16}, name, [](verify::Inputs& inputs) {
    for (std::int64_t row = 0; row < kShape.kv_len; ++row) {
      write_element(inputs.v.data(), bf16, row * kDim + 2, 3e38);
    }
  });
  CHECK(sums.reasons() == kNone);
  CHECK(sums.unjudged.overflow == kShape.q_len);
  for (const SnippetKind kind :
       {SnippetKind::q_scale, SnippetKind::k_scale, SnippetKind::v_scale}) {
    Spec spec{.dtype = bf16};
    snippet_text(spec, kind) = "h_kv == 1 ? 1.0f / 0.0f : 1.0f";
    const verify::Report scaled = check(spec, name, [](verify::Inputs&) {});
    CHECK(scaled.reasons() == kNone);
    CHECK(scaled.unjudged.scale == kShape.q_len * kDim);
    CHECK(scaled.odd_scales.contains(kind));
  }
}

TEST_CASE("emulated GPU: fast functions of one row's scores widen no other row's bounds") {
  const std::string name = GENERATE(as<std::string>(), "hopper", "portable");
  CAPTURE(name);
  Spec spec{.dtype = bf16, .head_dim = kDim, .outputs = {.lse = true}};
  spec.score_mod = "return q_idx == 7 ? -1e30f : 20.0f * tanh(score / 20.0f);";
  spec.tactic = TacticSpec{name, {}};
  verify::CheckOptions options;
  options.attention.device = Device::parse("cuda");
  options.check_undefined = false;
  const verify::Inputs inputs = verify::random_inputs(spec, kShape, 3);
  options.theirs = verify::Checker(spec, options).expected(inputs.problem()).reference.values;
  for (double& element : options.theirs->out.data) element = 0;
  const verify::Report report = verify::Checker(spec, options).check(inputs.problem());
  CHECK(report.verdict.reasons == kNone);
  CHECK_FALSE(report.their_verdict->ok);
}
