#include "tests/compile_matrix/kernels.hpp"

#include "generator/render/templates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/nvrtc.hpp"
#include "tests/support/slow_kernel.hpp"

using namespace tilewright;
using namespace tilewright::compile_matrix;
using Catch::Matchers::ContainsSubstring;
using test::nvrtc_is_missing;

namespace {

const Spec kPlain{.name = "plain", .dtype = bf16, .head_dim = 128};

Kernel kernel_of(const Spec& spec) {
  return distinct_kernels({{spec, Target::parse("sm_90a"), KernelVariant::parse("forward")}})
      .front();
}

Spec with_tiles_that_spill(Spec spec) {
  spec.tactic = TacticSpec{"portable", {{"q_tile", 128}, {"kv_tile", 128}, {"warps", 4}}};
  return spec;
}

}  // namespace

TEST_CASE("compile matrix: a good kernel has no problem, and its figures are there") {
  if (nvrtc_is_missing()) return;
  const Kernel kernel = kernel_of(kPlain);
  const Outcome outcome = compile(kernel);
  REQUIRE(problems(kernel, outcome).empty());
  REQUIRE(outcome.resources.registers > 64);
  REQUIRE(outcome.cubin_bytes > 1000);
  REQUIRE((outcome.compiler.starts_with("V") || outcome.compiler.starts_with("NVRTC ")));
}

TEST_CASE("compile matrix: what does not compile is a problem, with the compiler's words") {
  if (nvrtc_is_missing()) return;
  Spec wrong = kPlain;
  wrong.score_mod = "scor * 2";
  const Kernel kernel = kernel_of(wrong);
  const auto found = problems(kernel, compile(kernel));
  REQUIRE(found.size() == 1);
  REQUIRE_THAT(found[0], ContainsSubstring("\"scor\" is undefined"));
}

TEST_CASE("compile matrix: a spill is a problem where the tactic was chosen, not forced") {
  if (nvrtc_is_missing()) return;
  Kernel kernel = kernel_of(with_tiles_that_spill(kPlain));
  const Outcome outcome = compile(kernel);
  REQUIRE(outcome.resources.spill_bytes > 0);
  REQUIRE(problems(kernel, outcome).empty());
  kernel.wishes.push_back({kPlain, kernel.source.target, kernel.source.variant});
  const auto found = problems(kernel, outcome);
  REQUIRE(found.size() == 1);
  REQUIRE_THAT(found[0], ContainsSubstring("spills"));
  // A template for one architecture promises it for all sizes, the portable one for 64 and 128.
  kernel.wishes.back().spec.head_dim = 96;
  REQUIRE(problems(kernel, outcome).size() == 1);
  kernel.wishes.back().target = Target::parse("sm_80");
  REQUIRE(problems(kernel, outcome).empty());
}

TEST_CASE("compile matrix: more shared memory than a block may have is a problem") {
  const Kernel kernel = kernel_of(kPlain);
  const Outcome outcome{.resources = {.shared_bytes = 232449}};
  const auto found = problems(kernel, outcome);
  REQUIRE(found.size() == 1);
  REQUIRE_THAT(found[0], ContainsSubstring("needs 232449 bytes of shared memory"));
}

TEST_CASE("compile matrix: what ptxas serialises or ignores is a problem at any tactic") {
  if (nvrtc_is_missing()) return;
  Kernel kernel = kernel_of(with_tiles_that_spill(kPlain));
  kernel.source.text = test::kSlowKernel;
  const auto found = problems(kernel, compile(kernel));
  REQUIRE(found.size() == 2);
  REQUIRE_THAT(found[0], ContainsSubstring("C7508"));
  REQUIRE_THAT(found[1], ContainsSubstring("C7511"));
}

TEST_CASE("compile matrix: products that are serialised without a word in the log are a problem") {
  if (nvrtc_is_missing()) return;
  Kernel kernel = kernel_of(kPlain);
  const Outcome good = compile(kernel);
  REQUIRE(good.products.products > 16);
  REQUIRE(problems(kernel, good).empty());
  kernel.source.text = test::kSlowKernel;
  Outcome slow = compile(kernel);
  slow.resources.performance_warnings.clear();
  const auto found = problems(kernel, slow);
  REQUIRE(found.size() == 1);
  REQUIRE_THAT(found[0], ContainsSubstring("serialises"));
}

TEST_CASE("compile matrix: equal sources for one target are one kernel") {
  Spec renamed = kPlain;
  renamed.name = "other";
  renamed.scale = 0.5;
  Spec other = kPlain;
  other.head_dim = 64;
  const Target sm_80 = Target::parse("sm_80"), sm_120 = Target::parse("sm_120");
  const auto kernels = distinct_kernels({{kPlain, sm_80, KernelVariant::parse("forward")},
                                         {renamed, sm_80, KernelVariant::parse("forward")},
                                         {other, sm_80, KernelVariant::parse("forward")},
                                         {kPlain, sm_120, KernelVariant::parse("forward")},
                                         {kPlain, sm_80, KernelVariant::parse("forward_masked")}});
  REQUIRE(kernels.size() == 4);
  REQUIRE(kernels[0].wishes.size() == 2);
  REQUIRE(kernels[0].wishes[1].describe() == "other bf16 128: forward for sm_80");
}
