#include "generator/tactic/tactic_candidates.hpp"

#include <set>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

std::set<std::string> described(Spec spec, const Target& target) {
  std::set<std::string> texts;
  for (const TacticSpec& candidate : tactic_candidates(SpecFacts(spec), target)) {
    spec.tactic = candidate;
    CHECK(texts.insert(choose_tactic(SpecFacts(spec), target).describe()).second);
  }
  return texts;
}

std::string chosen(const Spec& spec, const Target& target) {
  return choose_tactic(SpecFacts(spec), target).describe();
}

}  // namespace

TEST_CASE("tactic_candidates: each is another tactic that fits") {
  for (const char* const name : {"cpu-x86-64-v3", "sm_80", "sm_90a", "sm_120"}) {
    const Target target = Target::parse(name);
    for (const std::int64_t head_dim : {64, 112, 128, 192}) {
      for (const char* const mask : {"", "q_idx >= kv_idx"}) {
        CAPTURE(name, head_dim, mask);
        const Spec spec{.dtype = bf16, .head_dim = head_dim, .mask_mod = mask};
        const std::set<std::string> texts = described(spec, target);
        CHECK(texts.size() >= 2);
        CHECK(!texts.contains(chosen(spec, target)));
      }
    }
  }
}

TEST_CASE("tactic_candidates: tiles suit the block of the spec") {
  Spec spec{.dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};
  spec.block = {32, 64};
  for (const TacticSpec& candidate : tactic_candidates(SpecFacts(spec), Target::host_cpu())) {
    CHECK(32 % candidate.parameters.at("q_tile") == 0);
  }
}

TEST_CASE("tactic_candidates: Hopper's kernels are tried with tiles of 192 rows and in turns") {
  const Target target = Target::parse("sm_90a");
  const std::set<std::string> texts =
      described({.dtype = bf16, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"}, target);
  const auto any_holds = [&](const char* part) {
    for (const std::string& text : texts) {
      if (text.find(part) != std::string::npos) return true;
    }
    return false;
  };
  CHECK(any_holds("q_tile=192"));
  CHECK(any_holds("take_turns=1"));
  CHECK(any_holds("persistent=0"));
}

TEST_CASE("tactic_candidates: a forced tactic leaves nothing to choose") {
  Spec spec{.dtype = f32, .head_dim = 64};
  spec.tactic = TacticSpec{"cpu", {}};
  CHECK(tactic_candidates(SpecFacts(spec), Target::host_cpu()).empty());
}
