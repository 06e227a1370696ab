#include "generator/tactic/kernel_variant.hpp"

#include <set>

#include "base/error.hpp"
#include "generator/render/kernel_source.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kCpuNames = {"forward",
                                            "forward_lse",
                                            "forward_masked",
                                            "forward_masked_lse",
                                            "backward",
                                            "backward_masked",
                                            "weights",
                                            "weights_masked",
                                            "mask_exact",
                                            "mask_proved",
                                            "plan_exact",
                                            "plan_proved",
                                            "merge",
                                            "append",
                                            "quantise",
                                            "evaluate_float",
                                            "evaluate_double",
                                            "evaluate_slopes_float",
                                            "evaluate_slopes_double",
                                            "evaluate_checked"};

const std::vector<std::string> kGpuNames = {"forward",
                                            "forward_unaligned",
                                            "forward_lse",
                                            "forward_lse_unaligned",
                                            "forward_masked",
                                            "forward_masked_unaligned",
                                            "forward_masked_lse",
                                            "forward_masked_lse_unaligned",
                                            "forward_prefill",
                                            "forward_prefill_unaligned",
                                            "forward_prefill_lse",
                                            "forward_prefill_lse_unaligned",
                                            "forward_decode",
                                            "forward_decode_unaligned",
                                            "forward_decode_lse",
                                            "forward_decode_lse_unaligned",
                                            "forward_masked_decode",
                                            "forward_masked_decode_unaligned",
                                            "forward_masked_decode_lse",
                                            "forward_masked_decode_lse_unaligned",
                                            "forward_split",
                                            "forward_masked_split",
                                            "forward_prefill_split",
                                            "forward_prefill_resident",
                                            "forward_split_lse",
                                            "forward_masked_split_lse",
                                            "forward_prefill_split_lse",
                                            "forward_prefill_resident_lse",
                                            "backward",
                                            "backward_unaligned",
                                            "backward_masked",
                                            "backward_masked_unaligned",
                                            "weights",
                                            "weights_unaligned",
                                            "weights_masked",
                                            "weights_masked_unaligned",
                                            "backward_deterministic",
                                            "backward_masked_deterministic",
                                            "mask_lists",
                                            "mask_exact",
                                            "mask_proved",
                                            "plan_exact",
                                            "plan_proved",
                                            "merge",
                                            "append",
                                            "quantise"};

std::vector<std::string> names_for(const std::string& target) {
  std::vector<std::string> names;
  for (const KernelVariant& variant : kernel_variants(Target::parse(target))) {
    names.push_back(variant.name());
  }
  return names;
}

KernelLaunch launch_of(const Spec& spec, const KernelVariant& variant) {
  return kernel_metadata(spec, Target::parse("sm_90a"), variant).launch;
}

bool takes(const KernelLaunch& launch, float factor) {
  return factor >= launch.least_factor && factor <= launch.greatest_factor;
}

}  // namespace

// Caches, bundles and the command line know kernels by these names.
TEST_CASE("kernel variant: names are as files have them") {
  CHECK(names_for("cpu-x86-64-v3") == kCpuNames);
  CHECK(names_for("sm_80") == kGpuNames);
  CHECK(names_for("sm_90a") == kGpuNames);
}

TEST_CASE("kernel variant: a name leads back to its variant, and to no other") {
  std::set<std::string> names;
  for (const char* target : {"cpu", "sm_80"}) {
    for (const KernelVariant& variant : kernel_variants(Target::parse(target))) {
      CHECK(KernelVariant::parse(variant.name()) == variant);
      names.insert(variant.name());
    }
  }
  CHECK(names.size() == 51);
  CHECK(KernelVariant::parse("forward_masked_lse_unaligned") ==
        KernelVariant{.masked = true, .lse = true, .aligned = false});
}

TEST_CASE("kernel variant: other names are none, and the error names the nearest") {
  for (const char* name : {"", "forward_", "forward_lse_masked", "Forward", "mask_exact_lse",
                           "mask_lists_unaligned", "evaluate", "forward\n"}) {
    CAPTURE(name);
    CHECK_FALSE(KernelVariant::find(name));
    CHECK_THROWS_AS(KernelVariant::parse(name), Error);
  }
  CHECK_THROWS_WITH(KernelVariant::parse("forward_maskd"),
                    ContainsSubstring("there is no kernel \"forward_maskd\"") &&
                        ContainsSubstring("did you mean \"forward_masked\"?"));
}

TEST_CASE("kernel variant: every kernel of a spec is one of its target's") {
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.mask_mod = "q_idx >= kv_idx";
  for (const bool lse : {false, true}) {
    spec.outputs.lse = lse;
    for (const char* name : {"cpu", "sm_80", "sm_90a"}) {
      const Target target = Target::parse(name);
      for (const KernelVariant& variant : kernel_set(spec, target)) {
        CHECK(kernel_metadata(spec, target, variant).variant == variant);
        CHECK((!variant.is_forward() || variant.lse == lse));
        CHECK_FALSE(variant.is_evaluation());
      }
    }
  }
}

TEST_CASE("kernel variant: a kernel says which factors of the scores it takes") {
  Spec spec{.dtype = bf16, .head_dim = 64};
  const KernelLaunch plain = launch_of(spec, {});
  CHECK(plain.kv_box_rows > 0);
  CHECK(takes(plain, 1.0f));
  CHECK_FALSE(takes(plain, 0.5f));
  CHECK(takes(launch_of(spec, {.aligned = false}), -0.5f));

  spec.score_mod = "score + slopes[h] * (kv_idx - q_idx)";
  spec.buffers["slopes"] = {f32, {NamedDim::num_q_heads}};
  const KernelLaunch slope = launch_of(spec, {});
  CHECK(takes(slope, 0.125f));
  CHECK_FALSE(takes(slope, 0.0f));
  CHECK_FALSE(takes(slope, -0.125f));
  CHECK_FALSE(takes(slope, 0x1p21f));

  spec.score_mod = "score * score";
  CHECK(takes(launch_of(spec, {}), -0x1p30f));
  CHECK(takes(launch_of(spec, {}), 0.0f));
}

TEST_CASE("kernel variant: a kernel with a fixed maximum leaves rows of one key to another") {
  Spec spec{.dtype = bf16, .head_dim = 64, .score_mod = "cap * tanh(score / cap)"};
  spec.scalars["cap"] = {.dtype = f32, .default_value = 50};
  CHECK(launch_of(spec, {}).least_kv_len == 2);
  CHECK(launch_of(spec, {.aligned = false}).least_kv_len == 0);
  spec.dtype = f16;  // which has none
  CHECK(launch_of(spec, {}).least_kv_len == 0);
  spec.dtype = bf16;
  spec.layout = Layout::packed;  // whose kernels take them
  CHECK(launch_of(spec, {.rows = KernelRows::prefill}).least_kv_len == 0);
}

TEST_CASE("kernel variant: a kernel says which tables its proof reads") {
  Spec spec{.dtype = bf16, .head_dim = 64};
  spec.mask_mod = "documents[b][q_idx] == documents[b][kv_idx]";
  spec.buffers["documents"] = {i32, {NamedDim::batch, NamedDim::kv_len}};
  for (const char* name : {"cpu", "sm_80"}) {
    const auto tables = [&](KernelRole role) {
      return kernel_metadata(spec, Target::parse(name), {.role = role}).extrema_tables.size();
    };
    CHECK(tables(KernelRole::mask_proved) == 1);
    CHECK(tables(KernelRole::mask_exact) == 0);
    spec.buffers["documents"].sorted = Sorted::promised;
    CHECK(tables(KernelRole::mask_proved) == 0);
    spec.buffers["documents"].sorted = true;
  }
}
