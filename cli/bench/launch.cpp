// The host's time for a call.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "cli/bench/packed_workload.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/empty_kernel.hpp"

namespace tilewright::cli {
namespace {

constexpr int kCalls = 100;  // of a batch: fewer than a driver queues before its caller must wait

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

// Host time of a call, with the plan's rebuild in a packed one, and of as many of the driver's own
// launches where there is a driver.
std::vector<Samples> launch_times(const PreparedCall& call, double budget_ms) {
  const HostTimes times(call, budget_ms);
  const bool is_packed = call.lengths().has_value();
  const auto forward = [&] {
    if (is_packed) call.enqueue_rebuild();
    call.enqueue();
  };
  if (call.device().kind() == Device::Kind::cpu) return times.of({forward});
  const cuda::Driver& driver = cuda::Driver::get();
  const cuda::ContextScope scope(driver, call.device().index());
  cuda::EmptyKernel empty(driver, cuda::EmptyKernel::compile(call.attention().target().name()));
  return times.of({forward, [&] {
                     if (is_packed) empty.launch();
                     empty.launch();
                   }});
}

// A call whose kernel computes almost nothing.
Workload small_call(const Spec& spec) {
  if (spec.is_packed()) {
    return packed_workload(spec, {.num_q_heads = 1, .num_kv_heads = 1, .sequences = {{16, 16}}});
  }
  return {spec, {.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 16, .kv_len = 16}};
}

std::vector<Spec> small_specs(bool gpu) {
  const DType dtype = gpu ? DType::bf16 : DType::f32;
  const std::int64_t head_dim = gpu ? 64 : 16;
  std::vector<Spec> specs;
  for (Spec& spec : mod_variants(dtype, head_dim)) {
    if (spec.name == "dense" || spec.name == "alibi_causal") specs.push_back(std::move(spec));
  }
  Spec packed = causal_variant(dtype, head_dim);
  packed.name = "packed_causal";
  packed.layout = Layout::packed;
  specs.push_back(std::move(packed));
  return specs;
}

}  // namespace

BenchResults launch_suite(const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  BenchResults results{
      gpu ? Table({"variant", "host time per call", "the driver's launch", "ours above it"})
          : Table({"variant", "threads", "host time per call"})};
  for (const Spec& spec : own_or(arguments, small_specs(gpu))) {
    for (int count : thread_counts(arguments)) {
      ThreadPool threads(count);
      const PreparedCall call(small_call(spec), {.device = arguments.device,
                                                 .seed = arguments.seed,
                                                 .buffers = arguments.buffers,
                                                 .threads = &threads,
                                                 .batch_invariant = arguments.batch_invariant,
                                                 .splits = arguments.splits});
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

}  // namespace tilewright::cli
