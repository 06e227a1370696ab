#include "generator/tactic/backward_tactic.hpp"

#include <string>
#include <vector>

#include "generator/render/kernel_source.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

Spec spec_of(std::int64_t head_dim) {
  return {.dtype = bf16,
          .head_dim = head_dim,
          .mask_mod = "q_idx >= kv_idx",
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v"}};
}

KernelVariant any_order() {
  return {.role = KernelRole::backward, .masked = true, .aligned = true};
}

std::string why_not(const Spec& spec, const KernelVariant& kernel = any_order()) {
  return why_not_one_sweep(spec, kernel);
}

BackwardTactic tactic_of(const Spec& spec, const char* target, const KernelVariant& kernel) {
  return choose_backward_tactic(spec, Target::parse(target), kernel, 0);
}

std::vector<std::string> deterministic_kernels(const Spec& spec, const char* target) {
  std::vector<std::string> names;
  for (const KernelVariant& variant : kernel_set(spec, Target::parse(target))) {
    if (variant.deterministic) names.push_back(variant.name());
  }
  return names;
}

}  // namespace

TEST_CASE("backward tactic: one sweep computes dense gradients of 16 bits in any order") {
  for (const std::int64_t head_dim : {16, 64, 96, 128}) CHECK(why_not(spec_of(head_dim)).empty());
  const Spec spec = spec_of(64);

  KernelVariant kernel = any_order();
  kernel.deterministic = true;
  CHECK_THAT(why_not(spec, kernel), ContainsSubstring("whatever order"));
  kernel = any_order();
  kernel.aligned = false;
  CHECK_THAT(why_not(spec, kernel), ContainsSubstring("multiples of 16 bytes"));

  Spec other = spec;
  other.layout = Layout::packed;
  CHECK_THAT(why_not(other), ContainsSubstring("not packed"));
  other = spec;
  other.gradients = {"k", "v"};
  CHECK_THAT(why_not(other), ContainsSubstring("gradient of q together"));
  other.gradients = {"q"};
  CHECK_THAT(why_not(other), ContainsSubstring("gradient of q together"));
  other.gradients = {"q", "v"};
  CHECK(why_not(other).empty());
  other = spec;
  other.dtype = f32;
  CHECK_THAT(why_not(other), ContainsSubstring("one dtype"));
  other = spec;
  other.kv_dtype = f16;
  CHECK_THAT(why_not(other), ContainsSubstring("one dtype"));
  CHECK_THAT(why_not(spec_of(8)), ContainsSubstring("16 bytes"));
  CHECK_THAT(why_not(spec_of(192)), ContainsSubstring("above 256"));
  other = spec;
  other.score_mod = "score + slopes[h]";
  other.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}};
  CHECK(why_not(other).empty());
  other.gradients.emplace_back("slopes");
  CHECK_THAT(why_not(other), ContainsSubstring("the gradient of slopes"));
}

TEST_CASE("backward tactic: dX has a place in shared memory in one sweep alone") {
  for (const char* target : {"sm_80", "sm_89", "sm_90a"}) {
    const BackwardTactic one = tactic_of(spec_of(128), target, any_order());
    KernelVariant kernel = any_order();
    kernel.deterministic = true;
    const BackwardTactic two = tactic_of(spec_of(128), target, kernel);
    CHECK(one.one_sweep);
    CHECK_FALSE(two.one_sweep);
    const auto side_bytes = [](const BackwardTactic& tactic) {
      const std::int64_t passing = tactic.tiles.stages * tactic.tiles.kv_tile;
      return tactic.shared_bytes - (tactic.tiles.q_tile + passing) * 512 - passing * 8;
    };
    CHECK(side_bytes(one) == one.tiles.q_tile * one.tiles.kv_tile * 2);
    CHECK(side_bytes(two) == 0);
  }
}

TEST_CASE("backward tactic: a mask leaves tiles of 128 rows, a score_mod and dropout do not") {
  const auto rows = [](const Spec& spec) {
    return tactic_of(spec, "sm_80", any_order()).tiles.kv_tile;
  };
  Spec spec = spec_of(64);
  CHECK(rows(spec) == 128);
  CHECK(rows(spec_of(128)) == 64);
  Spec other = spec;
  other.score_mod = "score * 0.5f";
  CHECK(rows(other) == 64);
  other = spec;
  other.dropout = "0.1f";
  CHECK(rows(other) == 64);
}

TEST_CASE(
    "backward tactic: deterministic calls have a kernel of two sweeps where others take one") {
  Spec spec = spec_of(64);
  const std::vector<std::string> both = {"backward_deterministic", "backward_masked_deterministic"};
  CHECK(deterministic_kernels(spec, "sm_80") == both);
  CHECK(deterministic_kernels(spec_of(192), "sm_80").empty());
  spec.tactic = TacticSpec{.name = "portable"};
  CHECK(deterministic_kernels(spec, "sm_90a") == both);
}
