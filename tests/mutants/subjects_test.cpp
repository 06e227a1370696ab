#include "tests/mutants/subjects.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"
#include "tests/mutants/special_calls.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using namespace tilewright::mutants;

namespace {

const Subject& find(const std::vector<Subject>& all, const std::string& name) {
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const Subject& subject) { return subject.spec.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE(
    "subjects: with the special calls a mutant has as many as may be, and each subject has one") {
  for (const Device::Kind device : {Device::Kind::cpu, Device::Kind::cuda}) {
    std::size_t calls = 0;
    for (const Subject& subject : subjects(device)) {
      CAPTURE(subject.spec.name);
      CHECK_FALSE(subject.calls.empty());
      calls += subject.calls.size();
    }
    for (const SpecialCall& call : special_calls(device)) {
      calls += static_cast<std::size_t>(call.launches);
    }
    CHECK(static_cast<int>(calls) == (device == Device::Kind::cuda ? kMostCallsOnGpu : kMostCalls));
  }
}

TEST_CASE("subjects: what must show a mistake is of the kernel that makes it") {
  const std::vector<Subject> all = subjects(Device::Kind::cuda);
  const Target target = Target::parse("sm_90a");
  for (const char* name : {"hopper_holes", "late_rows"}) {
    CAPTURE(name);
    const Spec& spec = find(all, name).spec;
    const Tactic tactic = choose_cuda_tactic(spec, target, {.masked = true});
    REQUIRE(tactic.name() == "hopper");
    CHECK(spans_two_blocks(spec, *tactic.hopper()));
  }
  for (const char* name : {"sharp", "far_from_zero"}) {
    CHECK(choose_cuda_tactic(find(all, name).spec, target, {}).name() == "portable");
  }
}

TEST_CASE("subjects: the last q tile of late rows reaches behind the mask's rows") {
  const Subject late = find(subjects(Device::Kind::cuda), "late_rows");
  const Target target = Target::parse("sm_90a");
  const std::int64_t q_tile =
      choose_cuda_tactic(late.spec, target, {.masked = true}).parameters().at("q_tile");
  const std::int64_t q_len = late.calls.front().shape.q_len;
  const std::int64_t block = late.spec.block[0];
  const std::int64_t q_tiles = (q_len + q_tile - 1) / q_tile;
  CHECK(q_tiles * q_tile > (q_len + block - 1) / block * block);
}
