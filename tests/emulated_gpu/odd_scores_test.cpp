// Rows of q with a score of NaN or +infinity: NaN reaches what they keep, and nothing else.

#include <string>
#include <utility>
#include <vector>

#include "tests/emulated_gpu/hopper_backward_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::test;

namespace {

const std::string kCausal = "q_idx >= kv_idx";
const std::string kOddRow = "q_idx == 70 ? INFINITY : score";

Spec spec_of(DType dtype, std::int64_t head_dim, std::string score_mod) {
  return {.dtype = dtype,
          .head_dim = head_dim,
          .score_mod = std::move(score_mod),
          .mask_mod = kCausal,
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v"}};
}

// Reads by head, column and difference: Hopper's kernel sums each in its own way.
Spec spec_of_reads(DType dtype, const std::string& score) {
  Spec spec = spec_of(dtype, 64,
                      score +
                          " + slopes[h] * 0.1 + column[kv_idx] + "
                          "bias[clamp(kv_idx - q_idx, -90, 90) + 90]");
  spec.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                  {"column", {.dtype = f32, .shape = {NamedDim::kv_len}}},
                  {"bias", {.dtype = f32, .shape = {181}}}};
  for (const char* const name : {"slopes", "column", "bias"}) spec.gradients.emplace_back(name);
  return spec;
}

void check(const Spec& spec, bool deterministic = false) {
  check_on_hopper(spec, kRagged, {.deterministic = deterministic, .has_odd_scores = true});
}

void check_on_portable(const Spec& spec) {
  HopperCall call(spec, kRagged, {.has_odd_scores = true});
  call.run();
  call.judge();
}

}  // namespace

TEST_CASE("emulated GPU: NaN of a row's scores reaches what it keeps alone, on Hopper",
          "[every-kind]") {
  check(spec_of(bf16, 128, kOddRow));
  check(spec_of(f16, 64, "sqrt(score)"));
  check(spec_of(bf16, 128, kOddRow), true);
  check(spec_of(f16, 256, kOddRow));
}

TEST_CASE("emulated GPU: NaN of a row's scores and gradients of buffers on Hopper") {
  check(spec_of_reads(bf16, "score + (q_idx == 70 ? INFINITY : 0.0)"));
}

TEST_CASE("emulated GPU: NaN of a row's scores and branches that read nothing, on Hopper") {
  const std::string score = "score + (q_idx == 70 ? INFINITY : 0.0)";
  Spec spec =
      spec_of(bf16, 64, "select(kv_idx > 20, " + score + " + column[kv_idx], " + score + ")");
  spec.buffers = {{"column", {.dtype = f32, .shape = {NamedDim::kv_len}}}};
  spec.gradients.emplace_back("column");
  check(spec);
}

TEST_CASE("emulated GPU: NaN of a row's scores reaches what it keeps alone", "[every-kind]") {
  check_on_portable(spec_of(f32, 40, kOddRow));
  check_on_portable(spec_of_reads(f32, "(" + kOddRow + ")"));
}

TEST_CASE("emulated GPU: planted faults that spread NaN of a row's scores are seen") {
  const Fault of_delta = {"delta of a row of NaN", "cuda/hopper/backward/prepare_row.hpp",
                          "is_kept && is_number", "is_kept"};
  CHECK_FALSE(is_right(of_delta, spec_of(bf16, 128, kOddRow), kRagged, {.has_odd_scores = true}));
}
