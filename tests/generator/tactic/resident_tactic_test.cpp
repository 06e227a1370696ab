#include "generator/tactic/resident_tactic.hpp"

#include "generator/render/kernel_source.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

constexpr KernelVariant kResident = {.rows = KernelRows::prefill, .resident = true};

Spec packed(std::int64_t head_dim, std::string mask_mod = "q_idx >= kv_idx") {
  return {.dtype = bf16,
          .head_dim = head_dim,
          .layout = Layout::packed,
          .mask_mod = std::move(mask_mod)};
}

bool has(const Spec& spec, const char* target = "sm_90a") {
  return has_resident_kernel(SpecFacts(spec), Target::parse(target), kResident);
}

}  // namespace

TEST_CASE("resident tactic: packed specs of 16 bits and heads of 64 to 128 have it on Hopper") {
  for (const char* const mask_mod : {"", "q_idx >= kv_idx"}) {
    for (const std::int64_t head_dim : {64, 96, 128}) CHECK(has(packed(head_dim, mask_mod)));
    for (const std::int64_t head_dim : {32, 56, 136, 256}) {
      CHECK_FALSE(has(packed(head_dim, mask_mod)));
    }
  }
  CHECK_FALSE(has(packed(128), "sm_80"));
  CHECK_FALSE(has(packed(128), "sm_100a"));
  Spec spec = packed(128);
  spec.layout = Layout::bhsd;
  CHECK_FALSE(has(spec));
  spec = packed(128);
  spec.kv_layout = Layout::paged;
  CHECK_FALSE(has(spec));
  spec = packed(128);
  spec.dtype = f32;
  CHECK_FALSE(has(spec));
  spec = packed(128);
  spec.v_head_dim = 64;
  CHECK_FALSE(has(spec));
  spec = packed(128);
  spec.tactic = TacticSpec{.name = "hopper"};
  CHECK_FALSE(has(spec));
  spec = packed(128);
  spec.score_mod = "score + x(h, q_idx, kv_idx) + powf(fabsf(score), 0.3f) * x(h, kv_idx, q_idx)";
  spec.buffers["x"] = {.dtype = f32, .shape = {NamedDim::num_q_heads, 256, 256}};
  CHECK_FALSE(has(spec));  // it would spill
  spec.score_mod = "score + x(h, q_idx, kv_idx)";
  CHECK(has(spec));
  spec = packed(128);
  spec.block = {128, 96};  // no whole tiles of 64 columns
  CHECK_FALSE(has(spec));
}

TEST_CASE("resident tactic: four tiles of K and V, and Q of three warpgroups that take no turns") {
  for (const char* const mask_mod : {"", "q_idx >= kv_idx"}) {
    const SpecFacts facts(packed(128, mask_mod));
    const Tactic tactic = choose_tactic(facts, Target::parse("sm_90a"), kResident);
    REQUIRE(tactic.hopper());
    CHECK(tactic.hopper()->q_tile == 192);
    CHECK(tactic.hopper()->kv_tile == 64);
    CHECK(tactic.hopper()->stages == 4);
    CHECK_FALSE(tactic.hopper()->take_turns);
    CHECK(shared_bytes(facts.spec, *tactic.hopper()) <= shared_room(Target::parse("sm_90a")));
  }
}

TEST_CASE("resident tactic: a launch says how many rows of k a sequence may have") {
  const Target hopper = Target::parse("sm_90a");
  CHECK(kernel_metadata(packed(128), hopper, kResident).launch.resident_rows == 256);
  CHECK(kernel_metadata(packed(128), hopper, {.rows = KernelRows::prefill}).launch.resident_rows ==
        0);
  CHECK_THROWS_AS(choose_tactic(SpecFacts(packed(256)), hopper, kResident), Error);
}
