// What making a spec's kernels takes: by the compiler, from disk, from memory.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cache/store.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/progress.hpp"
#include "runtime/api/attention.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/empty_kernel.hpp"
#include "runtime/library/kernel_library.hpp"

namespace tilewright::cli {
namespace {

constexpr double kShortBudgetMs = 50;
constexpr int kColdCompiles = 3;  // of each variant, side by side

// Of each variant's slowest kernel, with no other compiled. What else runs on the machine only ever
// adds, and does so for seconds at a time: it doubled single compiles. So variants take turns, and
// the least of a variant's times is what its kernel takes.
constexpr int kRoundsAlone = 5;

// CUDA's and NVRTC's own start, which would else count for the first variant.
class CudaStarted {
 public:
  explicit CudaStarted(const Device& device) : scope_(cuda::Driver::get(), device.index()) {
    const std::string target = cuda::device_facts(cuda::Driver::get(), device.index()).target();
    cuda::EmptyKernel::compile(target);
  }

 private:
  cuda::ContextScope scope_;
};

struct Kernels {
  std::size_t count = 0;
  std::string slowest;    // empty where none was compiled, as a bundle had all
  double compile_ms = 0;  // of the slowest: they are compiled side by side
  std::size_t bytes = 0;
  int registers = 0;  // of the kernel with the most
  int spill_bytes = 0;
};

Kernels summarize_builds(const std::vector<KernelBuild>& builds) {
  Kernels kernels{.count = builds.size()};
  for (const KernelBuild& build : builds) {
    if (build.compile_ms > kernels.compile_ms) {
      kernels.slowest = build.kernel;
      kernels.compile_ms = build.compile_ms;
    }
    kernels.bytes += build.bytes;
    if (!build.gpu) continue;
    kernels.registers = std::max(kernels.registers, static_cast<int>(build.gpu->registers));
    kernels.spill_bytes += static_cast<int>(build.gpu->spill_bytes);
  }
  return kernels;
}

// A separate cache, so that the user's is neither asked nor filled.
std::shared_ptr<cache::Store> new_store_in(const TemporaryDirectory& folder) {
  return std::make_shared<cache::Store>(
      cache::Store::Options{.directory = folder.path(), .diagnostics = {}});
}

class Variant {
 public:
  Variant(Spec spec, const Device& device) : spec_(std::move(spec)), device_(device) {}

  const std::string& name() const { return spec_.name; }

  // Every kernel that a call needs, from the spec to where it can be called.
  void measure_side_by_side() {
    const TemporaryDirectory folder("bench");
    start_cold(new_store_in(folder));
    for (int i = 1; i < kColdCompiles; ++i) {
      const TemporaryDirectory other("bench-cold");
      start_cold(new_store_in(other));
    }
    const auto store = new_store_in(folder);
    disk_ms_ = sample(kShortBudgetMs, [&] { start(new_store_in(folder)); }).median_ms;
    memory_ms_ = sample(kShortBudgetMs, [&] { start(store); }).median_ms;
  }

  // What the compiler takes for the slowest kernel while no other is compiled.
  void compile_alone() {
    if (kernels_.slowest.empty()) return;
    const TemporaryDirectory folder("bench-alone");
    Toolchain toolchain;
    toolchain.store = new_store_in(folder);
    const auto built =
        build_kernel(spec_, *target_, KernelVariant::parse(kernels_.slowest), toolchain);
    alone_times_.push_back(built.build.compile_ms);
  }

  void add_to(BenchResults& results) const {
    const double cold_ms = summarize(cold_times_).median_ms;
    const double compile_ms = summarize(compile_times_).median_ms;
    const Samples alone = alone_times_.empty() ? Samples{} : summarize(alone_times_);
    std::vector<std::string> cells = {name(),
                                      format_ms(cold_ms),
                                      format_ms(compile_ms),
                                      format_ms(alone.median_ms),
                                      format_ms(alone.least_ms),
                                      format_ms(disk_ms_),
                                      format_ms(memory_ms_),
                                      format_bytes(kernels_.bytes)};
    Json row = {{"variant", name()},           {"device", device_.name()},
                {"kernels", kernels_.count},   {"cold_ms", cold_ms},
                {"compile_ms", compile_ms},    {"slowest", kernels_.slowest},
                {"alone_ms", alone.median_ms}, {"alone_least_ms", alone.least_ms},
                {"disk_ms", disk_ms_},         {"memory_ms", memory_ms_},
                {"bytes", kernels_.bytes}};
    if (device_.kind() == Device::Kind::cuda) {
      cells.insert(cells.end(),
                   {std::to_string(kernels_.registers), fmt::format("{} B", kernels_.spill_bytes)});
      row["registers"] = kernels_.registers;
      row["spill_bytes"] = kernels_.spill_bytes;
    }
    results.table.add(cells);
    results.rows.push_back(std::move(row));
  }

 private:
  Attention start(const std::shared_ptr<cache::Store>& store) const {
    Toolchain toolchain;
    toolchain.store = store;
    return Attention(spec_, {.device = device_, .kernels = toolchain});
  }

  void start_cold(const std::shared_ptr<cache::Store>& store) {
    const Stopwatch watch;
    const Attention attention = start(store);
    cold_times_.push_back(watch.ms());
    kernels_ = summarize_builds(attention.builds());
    target_ = attention.target();
    compile_times_.push_back(kernels_.compile_ms);
  }

  Spec spec_;
  Device device_;
  std::optional<Target> target_;
  Kernels kernels_;
  std::vector<double> cold_times_, compile_times_, alone_times_;
  double disk_ms_ = 0;
  double memory_ms_ = 0;
};

}  // namespace

BenchResults compile_suite(const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  std::vector<std::string> header = {"variant",      "new snippet", "of it compiling", "alone",
                                     "alone, least", "from disk",   "from memory",     "size"};
  if (gpu) header.insert(header.end(), {"registers", "spilled"});
  std::optional<CudaStarted> started;
  if (gpu) started.emplace(arguments.device);
  std::vector<Variant> variants;
  for (Spec& spec : variants_of(arguments)) {
    variants.emplace_back(std::move(spec), arguments.device);
  }
  Progress progress(variants.size() + kRoundsAlone, arguments.json);
  for (Variant& variant : variants) {
    progress.step(variant.name());
    variant.measure_side_by_side();
  }
  for (int round = 0; round < kRoundsAlone; ++round) {
    progress.step("one kernel at a time");
    for (Variant& variant : variants) variant.compile_alone();
  }
  BenchResults results{Table(header)};
  for (const Variant& variant : variants) variant.add_to(results);
  return results;
}

}  // namespace tilewright::cli
