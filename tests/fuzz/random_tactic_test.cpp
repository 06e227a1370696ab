#include "fuzz/random_tactic.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "generator/tactic/tactic.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace tilewright;
using namespace tilewright::verify;
using namespace tilewright::verify::fuzz;

constexpr KernelVariant kMasked{.masked = true};

TEST_CASE("fuzz: random tactics are valid and come to vary every parameter") {
  Spec spec{.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx", .block = {192, 128}};
  Random random(1, "tactics");
  const Target target = Target::parse("sm_90a");
  for (const std::string name : {"portable", "hopper"}) {
    std::set<std::string> varied;
    for (int i = 0; i < 200; ++i) {
      spec.tactic = random_tactic(name, spec, target, kMasked, random);
      REQUIRE(spec.tactic);
      CHECK(spec.tactic->name == name);
      CHECK_NOTHROW(choose_tactic(spec, target, kMasked));
      for (const auto& [parameter, value] : spec.tactic->parameters) varied.insert(parameter);
    }
    CHECK(varied.size() >= 7);
    CHECK(varied.contains("stages"));
    CHECK(varied.contains("warps") == (name == "portable"));
    spec.tactic.reset();
  }
}

TEST_CASE("fuzz: a template that cannot serve a spec has no tactic") {
  const Spec spec{.dtype = f32, .head_dim = 64};
  Random random(1, "tactics");
  CHECK_FALSE(random_tactic("hopper", spec, Target::parse("sm_90a"), {}, random));
  CHECK_FALSE(
      random_tactic("hopper", {.dtype = f16, .head_dim = 64}, Target::parse("sm_80"), {}, random));
  CHECK(random_tactic("portable", spec, Target::parse("sm_90a"), {}, random));
}

TEST_CASE("fuzz: different tactics differ in tiles, on a GPU in stages and warps too") {
  const Spec spec{.dtype = f16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
  const auto on_cpu = different_tactics(spec, Target::parse("cpu-x86-64-v3"), kMasked);
  REQUIRE(on_cpu.size() == 2);
  CHECK(on_cpu[1].parameters.contains("q_tile"));
  const auto on_gpu = different_tactics(spec, Target::parse("sm_90a"), kMasked);
  REQUIRE(on_gpu.size() == 4);
  CHECK(on_gpu[0].name == "portable");
  CHECK(on_gpu[1].parameters.size() >= 3);
  CHECK(on_gpu[3].name == "hopper");
}

TEST_CASE("fuzz: bounded waits change a spec that Hopper's kernels serve, and no other") {
  const Spec spec{.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
  const Spec bounded = with_bounded_waits(spec, Target::parse("sm_90a"));
  REQUIRE(bounded.tactic);
  CHECK(*bounded.tactic == TacticSpec{.name = "hopper", .parameters = {{"bounded_waits", 1}}});
  CHECK_NOTHROW(choose_tactic(bounded, Target::parse("sm_90a")));

  Spec forced = spec;
  forced.tactic = TacticSpec{.name = "hopper", .parameters = {{"q_tile", 128}}};
  CHECK(with_bounded_waits(forced, Target::parse("sm_90a")).tactic->parameters ==
        std::map<std::string, std::int64_t>{{"q_tile", 128}, {"bounded_waits", 1}});

  CHECK(with_bounded_waits(spec, Target::parse("sm_80")) == spec);
  const Spec f32_spec{.dtype = f32, .head_dim = 64};
  CHECK(with_bounded_waits(f32_spec, Target::parse("sm_90a")) == f32_spec);
}

}  // namespace
