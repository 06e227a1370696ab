// What attention costs beside computing: the host's time for a call, and making kernels.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cache/store.hpp"
#include "cli/bench_suites.hpp"
#include "cli/bench_variants.hpp"
#include "cli/bench_workloads.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/empty_kernel.hpp"
#include "runtime/kernel_library.hpp"
#include "runtime/temporary_directory.hpp"

namespace tilewright::cli {
namespace {

constexpr int kCalls = 100;  // of a batch: fewer than a driver queues before its caller must wait
constexpr double kShortBudgetMs = 50;

// Milliseconds of the host for each of `calls`, over batches that begin with an idle device. They
// take turns, so that what slows the machine down slows all of them.
class HostTimes {
 public:
  HostTimes(const PreparedCall& call, double budget_ms) : call_(call), budget_ms_(budget_ms) {}

  std::vector<Samples> of(const std::vector<std::function<void()>>& bodies) const {
    for (const auto& body : bodies) batch_ms(body);
    std::vector<std::vector<double>> times(bodies.size());
    const Stopwatch total;
    while (times[0].size() < kLeastSamples ||
           (times[0].size() < kMostSamples && total.ms() < budget_ms_)) {
      for (std::size_t i = 0; i < bodies.size(); ++i) times[i].push_back(batch_ms(bodies[i]));
    }
    std::vector<Samples> samples;
    for (std::vector<double>& each : times) samples.push_back(summarize(std::move(each)));
    return samples;
  }

 private:
  double batch_ms(const std::function<void()>& body) const {
    const Stopwatch watch;
    for (int i = 0; i < kCalls; ++i) body();
    const double ms = watch.ms();
    call_.wait();
    return ms / kCalls;
  }

  const PreparedCall& call_;
  double budget_ms_;
};

// Host time of a call, and of the driver's own launch where there is a driver.
std::vector<Samples> launch_times(const PreparedCall& call, double budget_ms) {
  const HostTimes times(call, budget_ms);
  const auto forward = [&] { call.enqueue(); };
  if (call.device().kind() == Device::Kind::cpu) return times.of({forward});
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::ContextScope scope(driver, call.device().index());
  cuda::EmptyKernel empty(driver, cuda::EmptyKernel::compile(call.attention().target().name()));
  return times.of({forward, [&] { empty.launch(); }});
}

struct Start {
  double ms;
  std::vector<KernelBuild> builds;
  Target target;
};

// Every kernel that a call needs, from the spec to where it can be called.
Start start(const Spec& spec, const Device& device, const std::shared_ptr<cache::Store>& store) {
  KernelContext context;
  context.store = store;
  const Stopwatch watch;
  const Attention attention(spec, {.device = device, .kernels = context});
  return {watch.ms(), attention.builds(), attention.target()};
}

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

// Of each variant: another process on the machine doubles the time of one.
constexpr int kColdCompiles = 3;

// A cache of its own, so that the user's is neither asked nor filled.
std::shared_ptr<cache::Store> new_store_in(const TemporaryDirectory& folder) {
  return std::make_shared<cache::Store>(
      cache::Store::Options{.directory = folder.path(), .diagnostics = {}});
}

// What the compiler takes for one kernel while no other is compiled.
double alone_ms(const Spec& spec, const Target& target, const std::string& kernel) {
  std::vector<double> times;
  for (int i = 0; i < kColdCompiles; ++i) {
    const TemporaryDirectory folder("bench-alone");
    KernelContext context;
    context.store = new_store_in(folder);
    times.push_back(build_kernel(spec, target, {kernel}, context).build.compile_ms);
  }
  return summarize(times).median_ms;
}

struct Compiled {
  std::size_t kernels = 0;
  std::string slowest;
  double compile_ms = 0;  // of the slowest kernel: they are compiled side by side
  std::size_t bytes = 0;
  int registers = 0;  // of the kernel with the most
  int spill_bytes = 0;
};

Compiled summarize_builds(const std::vector<KernelBuild>& builds) {
  Compiled compiled{.kernels = builds.size()};
  for (const KernelBuild& build : builds) {
    if (build.compile_ms > compiled.compile_ms) {
      compiled.slowest = build.kernel;
      compiled.compile_ms = build.compile_ms;
    }
    compiled.bytes += build.bytes;
    if (!build.gpu) continue;
    compiled.registers = std::max(compiled.registers, static_cast<int>(build.gpu->registers));
    compiled.spill_bytes += static_cast<int>(build.gpu->spill_bytes);
  }
  return compiled;
}

}  // namespace

BenchResults launch_suite(const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  BenchResults results{
      gpu ? Table({"variant", "host time per call", "the driver's launch", "ours beside it"})
          : Table({"variant", "threads", "host time per call"})};
  const Shape shape{.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 16, .kv_len = 16};
  std::vector<Spec> specs;
  for (Spec& spec : mod_variants(gpu ? DType::bf16 : DType::f32, gpu ? 64 : 16)) {
    if (spec.name == "dense" || spec.name == "alibi_causal") specs.push_back(std::move(spec));
  }
  for (const Spec& spec : own_or(arguments, specs)) {
    for (int count : thread_counts(arguments)) {
      ThreadPool threads(count);
      const PreparedCall call({spec, shape}, {.device = arguments.device,
                                              .seed = arguments.seed,
                                              .buffers = arguments.buffers,
                                              .threads = &threads});
      const std::vector<Samples> times = launch_times(call, arguments.timing.budget_ms);
      const double ms = times[0].median_ms;
      Json row = {{"variant", spec.name}, {"device", arguments.device.name()}};
      if (gpu) {
        const double launch_ms = times[1].median_ms;
        results.table.add(
            {spec.name, format_ms(ms), format_ms(launch_ms), format_ms(ms - launch_ms)});
        row["launch_ms"] = launch_ms;
        row["beside_ms"] = ms - launch_ms;
      } else {
        results.table.add({spec.name, std::to_string(threads.size()), format_ms(ms)});
        row["threads"] = threads.size();
      }
      row.update(to_json(times[0]));
      results.rows.push_back(std::move(row));
    }
  }
  return results;
}

BenchResults compile_suite(const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  std::vector<std::string> header = {
      "variant", "new snippet", "of it compiling", "alone", "from disk", "from memory", "size"};
  if (gpu) header.insert(header.end(), {"registers", "spilled"});
  BenchResults results{Table(header)};
  const std::vector<Spec> specs = variants_of(arguments);
  std::optional<CudaStarted> started;
  if (gpu) started.emplace(arguments.device);
  Progress progress(specs.size(), arguments.json);
  for (const Spec& spec : specs) {
    progress.step(spec.name);
    std::vector<double> cold_times, compile_times;
    Compiled compiled;
    std::optional<Target> target;
    const auto compile_in = [&](const TemporaryDirectory& folder) {
      const Start cold = start(spec, arguments.device, new_store_in(folder));
      compiled = summarize_builds(cold.builds);
      target = cold.target;
      cold_times.push_back(cold.ms);
      compile_times.push_back(compiled.compile_ms);
    };
    const TemporaryDirectory folder("bench");
    compile_in(folder);
    for (int i = 1; i < kColdCompiles; ++i) compile_in(TemporaryDirectory("bench-cold"));
    const double cold = summarize(cold_times).median_ms;
    const double compile = summarize(compile_times).median_ms;
    const bool compiles = !compiled.slowest.empty();  // false where a bundle has all
    const double alone = compiles ? alone_ms(spec, *target, compiled.slowest) : 0;
    const auto prepare = [&](const std::shared_ptr<cache::Store>& store) {
      start(spec, arguments.device, store);
    };
    const auto store = new_store_in(folder);
    const double disk = sample(kShortBudgetMs, [&] { prepare(new_store_in(folder)); }).median_ms;
    const double memory = sample(kShortBudgetMs, [&] { prepare(store); }).median_ms;
    std::vector<std::string> cells = {
        spec.name,       format_ms(cold),   format_ms(compile),          format_ms(alone),
        format_ms(disk), format_ms(memory), format_bytes(compiled.bytes)};
    Json row = {{"variant", spec.name},        {"device", arguments.device.name()},
                {"kernels", compiled.kernels}, {"cold_ms", cold},
                {"compile_ms", compile},       {"slowest", compiled.slowest},
                {"alone_ms", alone},           {"disk_ms", disk},
                {"memory_ms", memory},         {"bytes", compiled.bytes}};
    if (gpu) {
      cells.insert(cells.end(),
                   {std::to_string(compiled.registers), fmt::format("{} B", compiled.spill_bytes)});
      row["registers"] = compiled.registers;
      row["spill_bytes"] = compiled.spill_bytes;
    }
    results.table.add(cells);
    results.rows.push_back(std::move(row));
  }
  return results;
}

}  // namespace tilewright::cli
