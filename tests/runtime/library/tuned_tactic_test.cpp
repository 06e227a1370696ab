#include "runtime/library/tuned_tactic.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "base/error.hpp"
#include "cache/bundle.hpp"
#include "cache/bundles.hpp"
#include "cache/store.hpp"
#include "runtime/api/device_kind.hpp"
#include "runtime/api/precompile.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

const Spec kSpec{.name = "causal", .dtype = f32, .head_dim = 16, .mask_mod = "q_idx >= kv_idx"};
const TunedTactic kTuned{.tactic = TacticSpec{"cpu", {{"kv_tile", 64}, {"q_tile", 32}}},
                         .gain = 1.25,
                         .shapes = "1,2,2,70,70",
                         .date = "2026-11-27"};

DeviceKind this_cpu() {
  return device_kind(Device::cpu());
}

// A store in a folder of its own, and no bundles.
class Kept {
 public:
  Kept() {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("tuned-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    toolchain = {.store = std::make_shared<cache::Store>(
                     cache::Store::Options{.directory = folder_ / "cache"}),
                 .bundles = std::make_shared<const cache::Bundles>(),
                 .jit = true};
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path path(const char* name) const { return folder_ / name; }

  // The tactic with which an Attention of the spec is made.
  std::optional<TacticSpec> used(const Spec& spec = kSpec) const {
    return with_tuned_tactic(spec, this_cpu, {.device = Device::cpu(), .kernels = toolchain})
        .tactic;
  }

  Toolchain toolchain;

 private:
  std::filesystem::path folder_;
};

// A variable of the environment, for a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("tuned tactic: what is remembered is found, and used by an Attention") {
  const Kept kept;
  CHECK(!remembered_tactic(kSpec, this_cpu(), kept.toolchain));
  CHECK(!kept.used());
  remember_tactic(kSpec, this_cpu(), kTuned, kept.toolchain);
  CHECK(remembered_tactic(kSpec, this_cpu(), kept.toolchain) == kTuned);
  CHECK(kept.used() == kTuned.tactic);
  const Attention attention(kSpec, {.device = Device::cpu(), .kernels = kept.toolchain});
  CHECK(attention.spec().tactic == kTuned.tactic);
}

TEST_CASE("tuned tactic: it belongs to the spec and the device, whatever the spec is called") {
  const Kept kept;
  remember_tactic(kSpec, this_cpu(), kTuned, kept.toolchain);
  Spec other = kSpec;
  other.name = "named otherwise";
  other.scale = 0.5;
  CHECK(kept.used(other) == kTuned.tactic);
  other.head_dim = 32;
  CHECK(!kept.used(other));
  CHECK(!remembered_tactic(kSpec, {"NVIDIA H100", {Target::parse("sm_90a")}}, kept.toolchain));
}

TEST_CASE("tuned tactic: a spec's own tactic, packed specs and masks alone take none") {
  const Kept kept;
  Spec packed = kSpec;
  packed.layout = Layout::packed;
  remember_tactic(packed, this_cpu(), kTuned, kept.toolchain);
  CHECK(!kept.used(packed));
  remember_tactic(kSpec, this_cpu(), kTuned, kept.toolchain);
  Spec forced = kSpec;
  forced.tactic = TacticSpec{"cpu", {{"q_tile", 64}}};
  CHECK(kept.used(forced) == forced.tactic);
  CHECK(!with_tuned_tactic(kSpec, this_cpu,
                           {.device = Device::cpu(), .kernels = kept.toolchain, .masks_only = true})
             .tactic);
}

TEST_CASE("tuned tactic: TILEWRIGHT_TUNED=0 and TILEWRIGHT_JIT=off ignore it") {
  Kept kept;
  remember_tactic(kSpec, this_cpu(), kTuned, kept.toolchain);
  {
    const Variable off("TILEWRIGHT_TUNED", "0");
    CHECK(!kept.used());
  }
  {
    const Variable wrong("TILEWRIGHT_TUNED", "perhaps");
    CHECK_THROWS_WITH(kept.used(), ContainsSubstring("TILEWRIGHT_TUNED is \"perhaps\""));
  }
  kept.toolchain.jit = false;
  CHECK(!kept.used());
}

TEST_CASE("tuned tactic: one that no longer fits is not used, and a warning says why") {
  Kept kept;
  std::vector<std::string> warnings;
  kept.toolchain.diagnostics = [&](Severity severity, std::string_view message) {
    CHECK(severity == Severity::warning);
    warnings.emplace_back(message);
  };
  const auto refused = [&](const TacticSpec& tactic) {
    CAPTURE(tactic.name, tactic.parameters);
    TunedTactic odd = kTuned;
    odd.tactic = tactic;
    remember_tactic(kSpec, this_cpu(), odd, kept.toolchain);
    warnings.clear();
    CHECK(!kept.used());
    const std::vector<ManifestSpec> specs = {{kSpec, "/specs/0"}};
    CHECK(tuned_specs(specs, this_cpu(), kept.toolchain).specs.empty());
    REQUIRE(warnings.size() == 2);
    CHECK(warnings.front() == warnings.back());
    CHECK_THAT(warnings.front(), ContainsSubstring(kept.path("cache").string()) &&
                                     ContainsSubstring("\"causal\"") &&
                                     ContainsSubstring("--forget"));
    return warnings.front();
  };
  CHECK_THAT(refused({"cpu", {{"q_tile", 48}}}), ContainsSubstring("q_tile"));  // block[0] is 128
  CHECK_THAT(refused({"hopper", {}}), ContainsSubstring("hopper"));
  CHECK_THAT(refused({"cpu", {{"warps", 4}}}), ContainsSubstring("warps"));
  for (const char* const parameter : {"q_tile", "kv_tile", "vector_bytes"}) {
    for (const std::int64_t value : {INT64_MIN, std::int64_t{-16}, std::int64_t{0}, INT64_MAX}) {
      CHECK_THAT(refused({"cpu", {{parameter, value}}}), ContainsSubstring(parameter));
    }
  }
}

TEST_CASE("tuned tactic: numbers that are no whole ones of 64 bits make a record none") {
  const Kept kept;
  remember_tactic(kSpec, this_cpu(), kTuned, kept.toolchain);
  const std::vector<ManifestSpec> specs = {{kSpec, "/specs/0"}};
  const std::vector<cache::BundleItem> records =
      tuned_specs(specs, this_cpu(), kept.toolchain).records;
  REQUIRE(records.size() == 1);
  // What is found in a bundle that has this q_tile.
  const auto found_with = [&](const std::string& q_tile) {
    const std::string text = R"({"gain":1.25,"shapes":"1,2,2,70,70","date":"2026-11-27",)"
                             R"("tactic":{"name":"cpu","parameters":{"q_tile":)" +
                             q_tile + "}}}";
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    auto entry = std::make_shared<cache::Entry>(*records.front().entry);
    entry->payload.assign(bytes, bytes + text.size());
    cache::BundleItem item = records.front();
    item.entry = entry;
    cache::write_bundle(kept.path("odd.twb"), {item});
    const Toolchain bundled = {.bundles = std::make_shared<const cache::Bundles>(
                                   cache::Bundles::Options{.paths = {kept.path("odd.twb")}}),
                               .jit = false};
    return remembered_tactic(kSpec, this_cpu(), bundled);
  };
  REQUIRE(found_with("32"));
  CHECK(found_with("32")->tactic->parameters.at("q_tile") == 32);
  for (const char* const value : {"32.5", "1e300", "-1e300", "18446744073709551615", "\"32\"",
                                  "null", "[32]", "99999999999999999999999999"}) {
    CAPTURE(value);
    CHECK_FALSE(found_with(value));
  }
}

TEST_CASE("tuned tactic: an empty record forgets, a damaged one counts as none") {
  const Kept kept;
  remember_tactic(kSpec, this_cpu(), kTuned, kept.toolchain);
  remember_tactic(kSpec, this_cpu(), {}, kept.toolchain);
  CHECK(!remembered_tactic(kSpec, this_cpu(), kept.toolchain));
  CHECK(!kept.used());
}

TEST_CASE("tuned tactic: a store that keeps nothing is an error") {
  const Toolchain toolchain = {.store = std::make_shared<cache::Store>(cache::Store::Options{}),
                               .bundles = std::make_shared<const cache::Bundles>(),
                               .jit = true};
  CHECK_THROWS_WITH(remember_tactic(kSpec, this_cpu(), kTuned, toolchain),
                    ContainsSubstring("the tactic could not be kept"));
}

TEST_CASE("tuned tactic: a bundle carries it to a machine that compiles nothing") {
  const Kept kept;
  remember_tactic(kSpec, this_cpu(), kTuned, kept.toolchain);
  const std::vector<ManifestSpec> specs = {{kSpec, "/specs/0"}};
  const TunedSpecs tuned = tuned_specs(specs, this_cpu(), kept.toolchain);
  REQUIRE(tuned.specs.size() == 1);
  CHECK(tuned.specs.front().spec.tactic == kTuned.tactic);
  std::vector<cache::BundleItem> items =
      precompile(tuned.specs, tuned.targets, {.kernels = kept.toolchain});
  items.insert(items.end(), tuned.records.begin(), tuned.records.end());
  cache::write_bundle(kept.path("a.twb"), items);

  const Kept elsewhere;
  Toolchain toolchain = elsewhere.toolchain;
  toolchain.bundles = std::make_shared<const cache::Bundles>(
      cache::Bundles::Options{.paths = {kept.path("a.twb")}});
  toolchain.jit = false;
  const Attention attention(kSpec, {.device = Device::cpu(), .kernels = toolchain});
  CHECK(attention.spec().tactic == kTuned.tactic);
  for (const KernelBuild& build : attention.builds()) CHECK(build.source == "bundle");
}
