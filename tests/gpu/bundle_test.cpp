// Kernels from a bundle on a GPU, where nothing may be compiled.
//
// TILEWRIGHT_TEST_BUNDLE and TILEWRIGHT_TEST_MANIFEST name a bundle and the manifest that it was
// made from; without them a small one is made here, which needs NVRTC. To prove that none is
// needed, set TILEWRIGHT_NVRTC=/nonexistent with them (scripts/gpu_check.sh does).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <unistd.h>

#include "base/error.hpp"
#include "cache/bundles.hpp"
#include "cache/store.hpp"
#include "runtime/api/precompile.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/targets.hpp"
#include "tests/gpu/driver_functions.hpp"
#include "tests/gpu/gpu_call.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

const Spec kSpec{.name = "causal", .dtype = f32, .head_dim = 64, .mask_mod = "q_idx >= kv_idx"};

// A bundle with the specs that it holds.
struct Precompiled {
  std::filesystem::path bundle;
  std::vector<Spec> specs;
  bool is_ours = false;

  Precompiled() {
    const char* const given = std::getenv("TILEWRIGHT_TEST_BUNDLE");
    const char* const manifest = std::getenv("TILEWRIGHT_TEST_MANIFEST");
    if (given && manifest) {
      bundle = given;
      for (ManifestSpec& spec : manifest_from_file(manifest).specs) {
        specs.push_back(std::move(spec.spec));
      }
      return;
    }
    is_ours = true;
    bundle =
        std::filesystem::temp_directory_path() / ("gpu-" + std::to_string(::getpid()) + ".twb");
    const std::vector<ManifestSpec> wanted = {{kSpec, "/specs/0"}};
    const std::vector<Target> targets = {targets_of_gpu().at(0)};
    cache::write_bundle(bundle, precompile(wanted, targets, {}));
    specs.push_back(kSpec);
  }
  Precompiled(const Precompiled&) = delete;
  Precompiled& operator=(const Precompiled&) = delete;
  ~Precompiled() {
    std::error_code ignored;
    if (is_ours) std::filesystem::remove(bundle, ignored);
  }

  static std::vector<Target> targets_of_gpu() {
    return cuda::targets_of(cuda::device_facts(cuda::Driver::get(), 0));
  }

  // Nothing but the bundle.
  Toolchain toolchain() const {
    return {.store = std::make_shared<cache::Store>(cache::Store::Options{}),
            .bundles =
                std::make_shared<const cache::Bundles>(cache::Bundles::Options{.paths = {bundle}}),
            .jit = false};
  }
};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

TEST_CASE("gpu: every kernel of a bundle for this GPU loads, and nothing is compiled") {
  if (gpu_is_missing()) return;
  const Precompiled precompiled;
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::ContextScope scope(driver, 0);
  std::set<std::string> targets;
  for (const Target& target : Precompiled::targets_of_gpu()) targets.insert(target.name());
  const auto bundle = cache::Bundle::open(precompiled.bundle);
  std::size_t loaded = 0;
  std::size_t empty = 0;
  double verify_ms = 0;
  double driver_ms = 0;
  for (std::size_t i = 0; i < bundle->size(); ++i) {
    const auto facts = bundle->facts(i);
    REQUIRE(facts);
    if (!targets.contains(facts->metadata.at("target"))) continue;
    auto start = std::chrono::steady_clock::now();
    const cache::Bundle::Loaded found = bundle->load(i);
    verify_ms += ms_since(start);
    REQUIRE(found.entry);
    if (found.entry->payload
            .empty()) {  // an interpretation that does not compile, whose fallback serves
      ++empty;
      continue;
    }
    start = std::chrono::steady_clock::now();
    cuda::Module module = nullptr;
    require_success(driver.functions().module_load(&module, found.entry->payload.data()),
                    "loading a kernel");
    driver_ms += ms_since(start);
    driver.functions().module_unload(module);
    ++loaded;
  }
  std::printf(
      "bundle: %zu of %zu kernels loaded, %zu empty; verified in %.0f us each, loaded in %.0f us\n",
      loaded, bundle->size(), empty, 1000 * verify_ms / static_cast<double>(loaded),
      1000 * driver_ms / static_cast<double>(loaded));
  REQUIRE(loaded > 0);
}

TEST_CASE("gpu: every spec of a bundle is ready without NVRTC, none of its kernels rendered") {
  if (gpu_is_missing()) return;
  const Precompiled precompiled;
  const Toolchain toolchain = precompiled.toolchain();
  double first_ms = 0;
  double total_ms = 0;
  for (const Spec& spec : precompiled.specs) {
    const auto start = std::chrono::steady_clock::now();
    const Attention attention(spec, {.device = gpu(), .kernels = toolchain});
    const double ms = ms_since(start);
    total_ms += ms;
    if (first_ms == 0) first_ms = ms;
    for (const KernelBuild& build : attention.builds()) {
      REQUIRE((build.source == "bundle" || build.source == "memory"));
      REQUIRE(build.render_ms == 0);
      REQUIRE(build.compile_ms == 0);
    }
  }
  std::printf("bundle: %zu specs ready, the first in %.2f ms, each in %.2f ms\n",
              precompiled.specs.size(), first_ms,
              total_ms / static_cast<double>(precompiled.specs.size()));
}

TEST_CASE("gpu: a kernel from a bundle gives what the CPU gives") {
  if (gpu_is_missing()) return;
  if (std::getenv("TILEWRIGHT_TEST_BUNDLE")) return;  // whose specs are not these calls'
  const Precompiled precompiled;
  const Attention attention(kSpec, {.device = gpu(), .kernels = precompiled.toolchain()});
  GpuCall call;
  attention.forward(call.on_gpu(), attention.block_mask(call.shape()));
  REQUIRE(distance(call.out(), call.expected(kSpec)) < 2e-5f);
}
