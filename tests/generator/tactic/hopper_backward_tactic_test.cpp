#include "generator/tactic/hopper_backward_tactic.hpp"

#include <functional>
#include <string>
#include <utility>
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

std::string why_not(const Spec& spec, const char* target = "sm_90a") {
  return why_not_hopper_backward(spec, Target::parse(target), backward_kernel(spec));
}

}  // namespace

TEST_CASE("hopper backward tactic: tiles of both head dimensions fit into shared memory") {
  for (const std::int64_t head_dim : {64, 128}) {
    const Spec spec = spec_of(head_dim);
    const auto tactic =
        hopper_backward_tactic(spec, Target::parse("sm_90a"), backward_kernel(spec));
    REQUIRE(tactic);
    CHECK(tactic->columns == 128);
    CHECK(tactic->rows * head_dim == 8192);
    CHECK(tactic->shared_bytes <= 227 * 1024);
    CHECK(why_not(spec).empty());
  }
}

TEST_CASE("hopper backward tactic: two warpgroups share head dims above 128") {
  const auto tactic_of = [](std::int64_t head_dim, std::int64_t v_head_dim) {
    Spec spec = spec_of(head_dim);
    spec.v_head_dim = v_head_dim;
    const auto tactic =
        hopper_backward_tactic(spec, Target::parse("sm_90a"), backward_kernel(spec));
    REQUIRE(tactic);
    CHECK(tactic->is_wide);
    CHECK(tactic->columns == 64);
    CHECK(tactic->rows == 64);
    return *tactic;
  };
  CHECK(tactic_of(192, 128).shared_bytes == 157184);
  CHECK(tactic_of(192, 192).first_key_share == 64);
  CHECK(tactic_of(192, 192).first_value_share == 128);
  CHECK(tactic_of(64, 256).first_key_share == 64);
  CHECK(tactic_of(256, 64).first_value_share == 0);
  for (std::int64_t head_dim = 16; head_dim <= 256; head_dim += 8) {
    const HopperBackwardTactic tactic = tactic_of(head_dim, 256);
    CHECK(tactic.key_tile_dim >= head_dim);
    CHECK(tactic.value_tile_dim == 256);
    CHECK(tactic.shared_bytes <= 227 * 1024);
    CHECK(tactic.first_key_share <= 128);
    CHECK(hopper_backward_dq_columns({.head_dim = head_dim}) - tactic.first_key_share <= 128);
  }
}

TEST_CASE("hopper backward tactic: what the sums of gradients of buffers need") {
  Spec spec = spec_of(64);
  spec.score_mod = "score + slopes[h] + row[q_idx] + bias[q_idx - kv_idx]";
  spec.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                  {"row", {.dtype = f32, .shape = {NamedDim::q_len}}},
                  {"bias", {.dtype = f32, .shape = {100}}}};
  const auto tactic_of = [&](std::vector<std::string> names) {
    Spec one = spec;
    one.gradients.insert(one.gradients.end(), names.begin(), names.end());
    return hopper_backward_tactic(one, Target::parse("sm_90a"), backward_kernel(one));
  };
  const std::int64_t bytes = tactic_of({})->shared_bytes;
  CHECK(tactic_of({"slopes"})->own_sums == 1);
  CHECK(tactic_of({"row"})->row_reads == 1);
  CHECK(tactic_of({"bias"})->diagonals == 1);
  for (const char* name : {"slopes", "row", "bias"}) CHECK(tactic_of({name})->shared_bytes > bytes);
  CHECK_FALSE(tactic_of({"slopes", "row", "bias"}));
  spec.gradients.insert(spec.gradients.end(), {"slopes", "row", "bias"});
  CHECK_THAT(why_not(spec), ContainsSubstring("no room for the sums of 3 reads"));
}

TEST_CASE("hopper backward tactic: sums of slopes fit beside head dims below 256") {
  Spec spec = spec_of(192);
  spec.score_mod = "score + slopes[h]";
  spec.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}};
  spec.gradients.emplace_back("slopes");
  CHECK(why_not(spec).empty());
  spec.head_dim = 256;
  CHECK(why_not(spec) == "its shared memory has no room for the sums of 1 read");
}

TEST_CASE("hopper backward tactic: it declines with a reason") {
  const std::vector<std::pair<std::function<void(Spec&)>, const char*>> cases = {
      {[](Spec& s) { s.dtype = f32; }, "one dtype, f16 or bf16"},
      {[](Spec& s) { s.out_dtype = f32; }, "one dtype, f16 or bf16"},
      {[](Spec& s) {
         s.head_dim = 192;
         s.score_mod = "score + row[q_idx]";
         s.buffers = {{"row", {.dtype = f32, .shape = {NamedDim::q_len}}}};
         s.gradients.emplace_back("row");
       },
       "above 128 columns it sums no gradients of reads by q_idx alone"},
      {[](Spec& s) {
         s.head_dim = 256;
         s.block = {128, 32};
       },
       "64 columns do not divide block[1], which is 32"},
      {[](Spec& s) { s.v_head_dim = 60; }, "whole vectors of 16 bytes"},
      {[](Spec& s) {
         s.layout = Layout::packed;
         s.mask_mod = "q_idx >= kv_idx";
         s.block = {48, 64};
       },
       "block[1], which is 64"},
      {[](Spec& s) {
         s.gradients = {"q", "k"};
       },
       "q, k and v together"},
      {[](Spec& s) {
         s.block = {48, 128};
       },
       "block[0], which is 48"},
      {[](Spec& s) {
         s.block = {128, 64};
       },
       "block[1], which is 64"},
      {[](Spec& s) {
         s.tactic = TacticSpec{"portable", {}};
       },
       "the spec's tactic is"},
      {[](Spec& s) {
         s.score_mod = "score * slopes[h]";
         s.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}};
         s.gradients.emplace_back("slopes");
       },
       "adds to the score, as \"score + x[h]\" and \"select(c, score + x[h], score)\" do, and with "
       "slopes there is more"},
      {[](Spec& s) {
         s.score_mod = "score + one[q_idx - kv_idx] + two[kv_idx - q_idx]";
         s.buffers = {{"one", {.dtype = f32, .shape = {100}}},
                      {"two", {.dtype = f32, .shape = {100}}}};
         s.gradients.insert(s.gradients.end(), {"one", "two"});
       },
       "one read by the difference of q_idx and kv_idx, and score_mod has 2"}};
  for (const auto& [change, reason] : cases) {
    Spec spec = spec_of(128);
    change(spec);
    CHECK_THAT(why_not(spec), ContainsSubstring(reason));
    CHECK(!hopper_backward_tactic(spec, Target::parse("sm_90a"), backward_kernel(spec)));
  }
  CHECK_THAT(why_not(spec_of(128), "sm_80"), ContainsSubstring("sm_90a"));
  KernelVariant unaligned = backward_kernel(spec_of(128));
  unaligned.aligned = false;
  CHECK(!hopper_backward_tactic(spec_of(128), Target::parse("sm_90a"), unaligned));
}

TEST_CASE("hopper backward tactic: it serves dropout") {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    Spec spec = spec_of(head_dim);
    spec.dropout = "0.1f";
    CHECK(why_not(spec).empty());
  }
}

TEST_CASE("hopper backward: packed specs have it, whatever rows a plan's tiles have") {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    Spec spec = spec_of(head_dim);
    spec.layout = Layout::packed;
    CHECK(why_not(spec).empty());
    spec.mask_mod = "q_idx >= kv_idx";
    spec.block = {48, 128};
    CHECK(why_not(spec).empty());
    CHECK(hopper_backward_tactic(spec, Target::parse("sm_90a"), backward_kernel(spec)));
  }
}

TEST_CASE("hopper backward tactic: which deterministic calls it serves") {
  const auto names_of = [](const Spec& spec, const char* target) {
    std::vector<std::string> names;
    for (const KernelVariant& variant : kernel_set(spec, Target::parse(target))) {
      if (variant.deterministic) names.push_back(variant.name());
    }
    return names;
  };
  Spec spec = spec_of(64);
  CHECK(names_of(spec, "sm_90a") ==
        std::vector<std::string>{"backward_deterministic", "backward_masked_deterministic"});
  CHECK(names_of(spec, "cpu-x86-64-v3").empty());
  Spec packed = spec;
  packed.layout = Layout::packed;
  CHECK(names_of(packed, "sm_90a").empty());
  Spec learnt = spec;
  learnt.score_mod = "score + slopes[h]";
  learnt.buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}};
  CHECK_FALSE(names_of(learnt, "sm_90a").empty());
  learnt.gradients.emplace_back("slopes");
  CHECK(names_of(learnt, "sm_90a").empty());
}

TEST_CASE("hopper backward tactic: a deterministic kernel has the tiles of the one for any calls") {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    const Spec spec = spec_of(head_dim);
    KernelVariant kernel = backward_kernel(spec);
    const Target target = Target::parse("sm_90a");
    const KernelLaunch any = kernel_metadata(spec, target, kernel).launch;
    kernel.deterministic = true;
    const KernelLaunch launch = kernel_metadata(spec, target, kernel).launch;
    CHECK(launch.q_tile == any.q_tile);
    CHECK(launch.kv_box_rows == any.kv_box_rows);
    CHECK(launch.shared_bytes == any.shared_bytes);
  }
}
