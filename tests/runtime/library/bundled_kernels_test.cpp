// Kernels from bundles: without a compiler, without rendering, and what a miss says.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/sanitizers.hpp"
#include "cache/bundles.hpp"
#include "generator/render/templates.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/api/precompile.hpp"
#include "runtime/compile/cpu_identity.hpp"
#include "runtime/library/cache_export.hpp"
#include "runtime/library/kernel_facts.hpp"
#include "runtime/library/kernel_library.hpp"
#include "runtime/library/kernel_search.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

const Spec kSpec{.name = "causal",
                 .dtype = f32,
                 .head_dim = 16,
                 .mask_mod = "q_idx >= kv_idx",
                 .block = {64, 64}};
const Shape kShape{.num_q_heads = 2, .num_kv_heads = 2, .q_len = 70, .kv_len = 70};

std::shared_ptr<cache::Store> no_store() {
  return std::make_shared<cache::Store>(cache::Store::Options{});
}

// One bundle for all tests here, of every kernel of kSpec for every CPU, made once.
class Bundled {
 public:
  Bundled()
      : folder_(std::filesystem::temp_directory_path() /
                ("bundled-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    const std::vector<ManifestSpec> specs = {{kSpec, "/specs/0"}};
    store = std::make_shared<cache::Store>(
        cache::Store::Options{.directory = folder_ / "cache", .diagnostics = {}});
    items = precompile(specs, bundle_targets(std::vector<std::string>{"cpu"}),
                       {.kernels = {.store = store}});
    cache::write_bundle(path(), items);
    bundles = std::make_shared<const cache::Bundles>(cache::Bundles::Options{.paths = {path()}});
  }
  Bundled(const Bundled&) = delete;
  Bundled& operator=(const Bundled&) = delete;
  ~Bundled() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path path() const { return folder_ / "a.twb"; }
  Toolchain toolchain() const { return {.store = no_store(), .bundles = bundles, .jit = false}; }

  std::vector<cache::BundleItem> items;
  std::shared_ptr<cache::Store> store;
  std::shared_ptr<const cache::Bundles> bundles;

 private:
  std::filesystem::path folder_;
};

const Bundled& bundled() {
  static const Bundled bundle;
  return bundle;
}

// A compiler that is not there, for a scope.
class NoCompiler {
 public:
  NoCompiler() { ::setenv("TILEWRIGHT_CXX", "/nonexistent", 1); }
  NoCompiler(const NoCompiler&) = delete;
  NoCompiler& operator=(const NoCompiler&) = delete;
  ~NoCompiler() { ::unsetenv("TILEWRIGHT_CXX"); }
};

std::vector<float> run(const Attention& attention) {
  const auto filled = [](unsigned state) {
    Tensor tensor = Tensor::zeros(f32, {1, 2, 70, 16});
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      state = state * 1664525u + 1013904223u;
      static_cast<float*>(tensor.data())[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    }
    return tensor;
  };
  const Tensor q = filled(1), k = filled(2), v = filled(3);
  Tensor out = Tensor::zeros(f32, {1, 2, 70, 16});
  attention.forward({.q = q.view(), .k = k.view(), .v = v.view(), .out = out.view()},
                    attention.block_mask(kShape));
  const auto* data = static_cast<const float*>(out.data());
  return {data, data + out.numel()};
}

class ChangedTemplates : public jinja::Loader {
 public:
  std::optional<std::string> load(std::string_view name) const override {
    auto text = default_template_loader()->load(name);
    if (text && name == "cpu/kernels/forward.cpp.jinja") *text += "\n// changed\n";
    return text;
  }
  std::vector<std::string> names() const override { return default_template_loader()->names(); }
};

std::shared_ptr<cache::Store> own_store(const std::string& name) {
  return std::make_shared<cache::Store>(
      cache::Store::Options{.directory = bundled().path().parent_path() / name});
}

Error miss(const Spec& spec, const Toolchain& toolchain) {
  try {
    Attention(spec, {.device = Device::cpu(), .kernels = toolchain});
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "found");
}

}  // namespace

TEST_CASE("bundled kernels: they run on the highest level of this CPU, with no compiler") {
  const Attention compiled(kSpec, {.device = Device::cpu(), .kernels = {.store = no_store()}});
  const Toolchain toolchain = bundled().toolchain();
  const NoCompiler scope;
  const Attention attention(kSpec, {.device = Device::cpu(), .kernels = toolchain});
  REQUIRE(attention.target() == cpu_targets().at(0));
  for (const KernelBuild& build : attention.builds()) {
    REQUIRE((build.source == "bundle" || build.source == "memory"));
    REQUIRE(build.render_ms == 0);
    REQUIRE(build.compile_ms == 0);
  }
  const std::vector<float> ours = run(attention), theirs = run(compiled);
  float difference = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference = std::max(difference, std::abs(ours[i] - theirs[i]));
  }
  REQUIRE(difference < 1e-5f);  // other vector widths add in another order
}

TEST_CASE("bundled kernels: every kernel for every level is there, and those that can run load") {
  std::size_t loaded = 0;
  const NoCompiler scope;
  for (const char* name : {"cpu-x86-64-v3", "cpu-x86-64-v4"}) {
    const Target target = Target::parse(name);
    for (const KernelVariant& id : kernel_set(kSpec, target)) {
      const KernelBinary binary = build_kernel(kSpec, target, id, bundled().toolchain());
      REQUIRE(binary.source.text.empty());
      const auto& runnable = cpu_targets();
      if (std::find(runnable.begin(), runnable.end(), target) == runnable.end()) continue;
      const auto kernel = load_kernel(kSpec, target, id, bundled().toolchain());
      for (const std::string& entry : kernel->source.entry_points) {
        REQUIRE(kernel->entry<char>(entry.c_str()) != nullptr);
      }
      ++loaded;
    }
  }
  REQUIRE(loaded >= kernel_set(kSpec, cpu_targets().at(0)).size());
}

TEST_CASE("bundled kernels: another name, scale and default is the same kernel") {
  const NoCompiler scope;
  Spec spec = kSpec;
  spec.name = "another";
  spec.scale = 0.3;
  const Attention attention(spec, {.device = Device::cpu(), .kernels = bundled().toolchain()});
  REQUIRE(attention.builds().at(0).render_ms == 0);
}

TEST_CASE("bundled kernels: other templates are not taken for the embedded ones") {
  Toolchain toolchain = bundled().toolchain();
  toolchain.templates = std::make_shared<const ChangedTemplates>();
  const Error error = miss(kSpec, toolchain);
  REQUIRE(error.code() == ErrorCode::missing_kernel);
  toolchain.templates = default_template_loader();
  REQUIRE(miss(kSpec, toolchain).message() == "found");
}

TEST_CASE("bundled kernels: where nothing may be compiled, a miss says what to do") {
  Spec spec = kSpec;
  spec.name = "wide";
  spec.head_dim = 32;
  const Error error = miss(spec, bundled().toolchain());
  const std::string report = error.what();
  INFO(report);
  REQUIRE(error.code() == ErrorCode::missing_kernel);
  REQUIRE_THAT(report, ContainsSubstring("\"wide\"") && ContainsSubstring("TILEWRIGHT_JIT=off") &&
                           ContainsSubstring(bundled().path().native()) &&
                           ContainsSubstring("of \"causal\"") &&
                           ContainsSubstring("head_dim: wanted 32, recorded 16") &&
                           ContainsSubstring(R"({"spec": {"name": "wide", "dtype": "f32")"));
  REQUIRE_THAT(report, !ContainsSubstring("mask_mod: wanted"));

  Toolchain empty = bundled().toolchain();
  empty.bundles = std::make_shared<const cache::Bundles>();
  REQUIRE_THAT(miss(kSpec, empty).what(), ContainsSubstring("TILEWRIGHT_BUNDLES names none"));

  Toolchain absent = bundled().toolchain();
  absent.bundles = std::make_shared<const cache::Bundles>(
      cache::Bundles::Options{.paths = {"/nonexistent.twb"}});
  REQUIRE_THAT(miss(kSpec, absent).what(), ContainsSubstring("/nonexistent.twb"));
}

TEST_CASE("bundled kernels: a miss says what is wrong with the cache") {
  Toolchain toolchain = bundled().toolchain();
  toolchain.bundles = std::make_shared<const cache::Bundles>();
  toolchain.store = own_store("refused");
  const std::filesystem::path directory = *toolchain.store->directory();
  const std::vector<cache::BundleItem> items = exportable(*bundled().store);
  const cache::Entry& entry = *items.at(0).entry;
  toolchain.store->load_or_build(entry.key, [&] { return entry; });

  std::filesystem::permissions(directory, std::filesystem::perms(0777));
  const std::string refused = miss(kSpec, toolchain).what();
  REQUIRE_THAT(refused, ContainsSubstring("others can write to it") &&
                            ContainsSubstring("first mend the cache") &&
                            !ContainsSubstring("0 kernels"));
  std::filesystem::permissions(directory, std::filesystem::perms(0700));

  const std::string hex = entry.key.digest.hex();
  const auto path = directory / "v1" / hex.substr(0, 2) / (hex + ".twk");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  const std::string damaged = miss(kSpec, toolchain).what();
  INFO(damaged);
  REQUIRE_THAT(damaged, ContainsSubstring("entries of the cache that must not be used") &&
                            ContainsSubstring(hex) &&
                            ContainsSubstring("if it is one of the damaged entries above"));
}

TEST_CASE("bundled kernels: a compiler that is missing is not a kernel that is missing") {
  const NoCompiler scope;
  const Toolchain toolchain = {
      .store = no_store(), .bundles = std::make_shared<const cache::Bundles>(), .jit = true};
  REQUIRE(miss(kSpec, toolchain).code() == ErrorCode::compiler);
}

TEST_CASE("bundled kernels: an interpretation that only saves time may be missing") {
  const std::filesystem::path path = bundled().path().parent_path() / "fewer.twb";
  std::vector<cache::BundleItem> items = bundled().items;
  const std::size_t left_out = std::erase_if(items, [](const cache::BundleItem& item) {
    return item.metadata.at("kernel").starts_with("mask_proved");
  });
  REQUIRE(left_out > 0);
  cache::write_bundle(path, items);
  const Toolchain toolchain = {
      .store = no_store(),
      .bundles = std::make_shared<const cache::Bundles>(cache::Bundles::Options{.paths = {path}}),
      .jit = false};
  const Attention attention(kSpec, {.device = Device::cpu(), .kernels = toolchain});
  const std::vector<float> ours = run(attention);
  const Attention complete(kSpec, {.device = Device::cpu(), .kernels = bundled().toolchain()});
  REQUIRE(ours == run(complete));
}

TEST_CASE("bundled kernels: the line for the manifest is the spec") {
  Spec spec = kSpec;
  spec.score_mod = "float x = score;\n  return x;";
  spec.buffers["doc"] = {.dtype = DType::i32, .shape = {NamedDim::batch, NamedDim::kv_len}};
  const Manifest manifest =
      manifest_from_json("{\"specs\": [" + manifest_line(spec) + "]}", "m.json", "/");
  REQUIRE(manifest.specs.at(0).spec == spec);
  REQUIRE(manifest_line(spec).find('\n') == std::string::npos);
}

TEST_CASE("bundled kernels: the store serves without a compiler, too") {
  Toolchain toolchain = {
      .store = bundled().store, .bundles = std::make_shared<const cache::Bundles>(), .jit = false};
  const Target target = cpu_targets().at(0);
  const NoCompiler scope;
  const auto fresh = std::make_shared<cache::Store>(
      cache::Store::Options{.directory = bundled().store->directory()});
  toolchain.store = fresh;
  REQUIRE(build_kernel(kSpec, target, KernelVariant::parse("forward"), toolchain).build.source ==
          "disk");
  toolchain.jit = true;
  REQUIRE(
      build_kernel(kSpec, target, KernelVariant::parse("forward_masked"), toolchain).build.source ==
      "disk");
}

TEST_CASE("bundled kernels: an export of the store holds what was precompiled") {
  const std::vector<cache::BundleItem> items = exportable(*bundled().store);
  REQUIRE(cache::encode_bundle(items, nullptr) == cache::encode_bundle(bundled().items, nullptr));
}

TEST_CASE("bundled kernels: an export gives no memo to a kernel of other templates") {
  const auto store = own_store("changed");
  const Target target = Target::parse("cpu-x86-64-v3");
  Toolchain toolchain = {
      .store = store, .bundles = std::make_shared<const cache::Bundles>(), .jit = true};
  toolchain.templates = std::make_shared<const ChangedTemplates>();
  build_kernel(kSpec, target, KernelVariant::parse("forward"), toolchain);
  const std::vector<cache::BundleItem> changed = exportable(*store);
  REQUIRE(changed.size() == 1);
  REQUIRE(changed[0].memos.empty());

  toolchain.templates = default_template_loader();
  build_kernel(kSpec, target, KernelVariant::parse("forward"), toolchain);
  const std::vector<cache::BundleItem> both = exportable(*store);
  REQUIRE(both.size() == 2);
  REQUIRE(both[0].memos.size() + both[1].memos.size() == 1);
  REQUIRE_FALSE(cache::encode_bundle(both, nullptr).empty());
}

TEST_CASE("bundled kernels: of a kernel that two compilers made an export takes the newest") {
  const auto store = own_store("compilers");
  cache::Entry entry = *exportable(*bundled().store).at(0).entry;
  const auto keep = [&](const std::string& compiler, std::time_t age) {
    entry.metadata["compiler"] = compiler;
    const cache::Key key = cache::make_key(*recorded_request(entry.metadata), compiler);
    store->load_or_build(key, [&] { return entry; });
    const std::string hex = key.digest.hex();
    const auto path = *store->directory() / "v1" / hex.substr(0, 2) / (hex + ".twk");
    const timespec time{std::time(nullptr) - age, 0};
    const timespec times[2] = {time, time};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  };
  for (const int newest : {0, 1, 2}) {
    for (int i = 0; i < 3; ++i) keep("compiler " + std::to_string(i), i == newest ? 100 : 200 + i);
    LeftOut left_out;
    const std::vector<cache::BundleItem> items = exportable(*store, &left_out);
    REQUIRE(items.size() == 1);
    REQUIRE(items[0].metadata.at("compiler") == "compiler " + std::to_string(newest));
    REQUIRE(left_out.count() == 2);
    for (const std::string& older : left_out.older) {
      REQUIRE_THAT(older, ContainsSubstring("of \"causal\" for cpu-x86-64-v") &&
                              ContainsSubstring(", by compiler ") &&
                              !ContainsSubstring("compiler " + std::to_string(newest)));
    }
  }
}

TEST_CASE("bundled kernels: targets of a bundle are sorted, each once, and cpu is both levels") {
  const std::vector<std::string> names = {"sm_90a", "cpu", "sm_80", "cpu-x86-64-v4", "sm_80"};
  std::vector<std::string> found;
  for (const Target& target : bundle_targets(names)) found.push_back(target.name());
  REQUIRE(found == std::vector<std::string>{"cpu-x86-64-v3", "cpu-x86-64-v4", "sm_80", "sm_90a"});
  REQUIRE_THROWS_AS(bundle_targets(std::vector<std::string>{"sm_91"}), Error);
}

TEST_CASE("bundled kernels: a hit costs little beside the driver's own load") {
  const Target target = cpu_targets().at(0);
  std::vector<double> times;
  for (int run = 0; run < 50; ++run) {
    const auto fresh = std::make_shared<const cache::Bundles>(
        cache::Bundles::Options{.paths = {bundled().path()}});
    Toolchain toolchain = bundled().toolchain();
    toolchain.bundles = fresh;
    REQUIRE(fresh->has_ingredient("target", target.name()));
    const auto start = std::chrono::steady_clock::now();
    const KernelBinary binary =
        build_kernel(kSpec, target, KernelVariant::parse("forward_masked"), toolchain);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    REQUIRE(binary.build.source == "bundle");
    times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  std::printf("[bundle] from a spec to a verified binary: %.0f us (median %.0f)\n", times[0],
              times[25]);
  // The promise is of code without a sanitizer.
  REQUIRE(times[0] < (kHasSanitizer ? 2500 : 250));
}
