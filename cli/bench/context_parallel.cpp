// One sequence over all GPUs of the machine, beside one GPU.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/rank_call.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/call.hpp"
#include "cli/machine.hpp"
#include "cli/progress.hpp"
#include "runtime/api/nccl.hpp"

namespace tilewright::cli {
namespace {

using Ranks = std::vector<std::shared_ptr<Communicator>>;

std::vector<Device> all_gpus(const BenchArguments& arguments) {
  const int count = on_gpu(arguments) ? cuda::Driver::get().device_count() : 0;
  if (count < 2) {
    throw Error(
        ErrorCode::device,
        fmt::format("--suite context_parallel needs two GPUs, and this machine has {}", count),
        "other suites measure one device");
  }
  std::vector<Device> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(Device::parse(fmt::format("cuda:{}", i)));
  return gpus;
}

std::vector<Workload> context_workloads(const BenchArguments& arguments) {
  const Shape shape = shape_of(
      arguments, {.num_q_heads = 16, .num_kv_heads = 16, .q_len = 131072, .kv_len = 131072});
  if (shape.batch != 1 || arguments.spec || (arguments.dtype && *arguments.dtype != DType::bf16)) {
    throw Error(ErrorCode::usage,
                "--suite context_parallel measures masks of its own, in bf16 with batch 1",
                "leave --spec, --dtype and --batch out");
  }
  const std::int64_t head_dim = arguments.head_dim == 0 ? 128 : arguments.head_dim;
  const Spec full = dense_variant(DType::bf16, head_dim);
  std::vector<Spec> specs(4, full);
  specs[0].name = "full";
  specs[1].name = "causal";
  specs[1].mask_mod = "q_idx >= kv_idx";
  specs[2].name = "window_4096";
  specs[2].mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 4096";
  specs[3].name = "documents_12";
  specs[3].mask_mod = "q_idx >= kv_idx && doc[q_idx] == doc[kv_idx]";
  specs[3].buffers["doc"] = {
      .dtype = DType::i32, .shape = {FreeDim{}}, .range = {{0, 11}}, .sorted = true};
  std::vector<Workload> workloads;
  for (Spec& spec : specs) {
    spec.outputs.lse = true;
    if (!spec.mask_mod.empty()) {
      spec.block = fastest_block(spec, gpu_facts(arguments.device).target, shape.q_len);
    }
    workloads.push_back({spec, shape});
  }
  return workloads;
}

// Runs a body on each rank, a thread each, and throws the first one's error.
void on_ranks(const Ranks& ranks, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        body(static_cast<int>(i));
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// The greatest of all ranks' numbers; also a barrier.
double greatest(Communicator& communicator, double mine) {
  const std::vector<std::byte> all = communicator.all_gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<double> numbers(all.size() / sizeof(double));
  std::memcpy(numbers.data(), all.data(), all.size());
  return *std::max_element(numbers.begin(), numbers.end());
}

// How many calls back to back make a sample of some length.
int calls_of_sample(double ms) {
  constexpr double kSampleMs = 100;
  return static_cast<int>(std::clamp(std::ceil(kSampleMs / ms), 1.0, 20.0));
}

// Calls back to back that begin together on all ranks; a sample takes as long as its slowest rank.
Samples sample_together(Communicator& communicator, double budget_ms,
                        const std::function<void()>& enqueue, const std::function<void()>& wait) {
  const auto run = [&](int calls) {
    greatest(communicator, 0);
    const Stopwatch watch;
    for (int i = 0; i < calls; ++i) enqueue();
    wait();
    return greatest(communicator, watch.ms());
  };
  run(1);
  const int calls = calls_of_sample(run(1));
  std::vector<double> times;
  for (double total = 0;
       times.size() < kLeastSamples || (times.size() < kMostSamples && total < budget_ms);) {
    const double ms = run(calls);
    times.push_back(ms / calls);
    total += ms;
  }
  return summarize(std::move(times));
}

// GB/s in each direction, of exchanges with both neighbours at once.
double link_gigabytes_per_second(const Ranks& ranks, const std::vector<Device>& gpus) {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  const int size = static_cast<int>(ranks.size());
  double best = 0;
  on_ranks(ranks, [&](int rank) {
    Communicator& communicator = *ranks[static_cast<std::size_t>(rank)];
    const GpuMemory from(gpus[static_cast<std::size_t>(rank)].index(), kBytes);
    const GpuMemory to(gpus[static_cast<std::size_t>(rank)].index(), kBytes);
    const Message send = {(rank + 1) % size, from.data(), kBytes};
    const Message receive = {(rank + size - 1) % size, to.data(), kBytes};
    const Samples samples = sample_together(
        communicator, 0,
        [&] { communicator.exchange(std::span(&send, 1), std::span(&receive, 1), nullptr); },
        [&] { communicator.wait(nullptr); });
    if (rank == 0) best = static_cast<double>(kBytes) / samples.least_ms / 1e6;
  });
  return best;
}

// Times and results of one way to compute the whole.
struct Measured {
  Samples samples;
  ContextTraffic traffic = {};
  std::int64_t bytes_sent = 0;  // by all ranks
  std::int64_t workspace = 0;   // of rank 0
  Sharding sharding = Sharding::contiguous;
  std::vector<std::uint16_t> out;
  std::vector<float> lse;

  explicit Measured(const Workload& workload) {
    const auto rows = static_cast<std::size_t>(workload.shape.num_q_heads * workload.shape.q_len);
    lse.resize(rows);
    out.resize(rows * static_cast<std::size_t>(workload.spec.value_head_dim()));
  }
};

Measured measure_one(const Workload& workload, const Device& gpu, double budget_ms) {
  Measured measured(workload);
  const Attention attention(workload.spec, {.device = gpu, .kernels = command_line_toolchain()});
  const SequenceRows rows(workload, whole_shard(workload.shape), gpu);
  const DocumentIds documents(workload.shape.kv_len, gpu.index());
  const Bindings bindings =
      attention.bind(workload.spec.buffers.empty() ? SnippetInputs{} : documents.inputs());
  std::optional<BlockMask> mask;
  if (!workload.spec.mask_mod.empty()) mask = attention.block_mask(workload.shape, bindings);
  const GpuMemory last(gpu.index(), 1);
  char byte = 0;
  const auto run = [&](int calls) {
    const Stopwatch watch;
    for (int i = 0; i < calls; ++i) {
      if (mask) {
        attention.forward(rows.tensors(), *mask, bindings);
      } else {
        attention.forward(rows.tensors(), bindings);
      }
    }
    last.read(&byte, 1);  // in the default stream's order
    return watch.ms() / calls;
  };
  run(1);
  const int calls = calls_of_sample(run(1));
  measured.samples = sample(budget_ms, [&] { run(calls); });
  measured.samples.median_ms /= calls;
  measured.samples.least_ms /= calls;
  rows.read_results(measured.out, measured.lse);
  return measured;
}

Measured measure_all(const Workload& workload, const Ranks& ranks, const std::vector<Device>& gpus,
                     double budget_ms) {
  Measured measured(workload);
  on_ranks(ranks, [&](int rank) {
    const std::shared_ptr<Communicator>& communicator = ranks[static_cast<std::size_t>(rank)];
    const Device& gpu = gpus[static_cast<std::size_t>(rank)];
    const ContextParallel context(workload.spec, communicator,
                                  {.device = gpu, .kernels = command_line_toolchain()});
    const DocumentIds documents(workload.shape.kv_len, gpu.index());
    const Bindings bindings = context.bind(
        workload.shape, workload.spec.buffers.empty() ? SnippetInputs{} : documents.inputs());
    const ContextPlan plan = context.plan(workload.shape, bindings);
    const SequenceRows rows(workload, plan.shards(), gpu);
    const std::int64_t bytes = context.workspace_size(plan);
    const GpuMemory workspace(gpu.index(), bytes);
    const ContextCallOptions options = {
        .workspace = TensorView::contiguous(workspace.data(), DType::u8, {bytes})};
    const Samples samples = sample_together(
        *communicator, budget_ms, [&] { context.forward(rows.tensors(), plan, bindings, options); },
        [&] { context.wait(); });
    rows.read_results(measured.out, measured.lse);  // each rank its own rows
    const std::int64_t own_bytes = plan.traffic().bytes_sent;
    const std::vector<std::byte> all =
        communicator->all_gather(std::as_bytes(std::span(&own_bytes, 1)));
    if (rank != 0) return;
    std::vector<std::int64_t> sent(all.size() / sizeof(std::int64_t));
    std::memcpy(sent.data(), all.data(), all.size());
    measured.bytes_sent = std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
    measured.samples = samples;
    measured.traffic = plan.traffic();
    measured.sharding = plan.sharding();
    measured.workspace = bytes;
  });
  return measured;
}

// Each call rounds P to bf16 before it meets V, and out; the divided one rounds parts too. Five
// roundings of at most 2^-9, evenly distributed and independent, are 2^-9 sqrt(5 / 3) = 2.5e-3 of
// out, whose own size is that of a sum with as many signs. The bound is three times that. A shard
// that is missing or in a wrong place is off by 1.
constexpr double kRelativeBound = 7.5e-3;
// verify/judge.hpp: 2e-3 + 2^-19 |lse| for each of the two, |lse| below 20.
constexpr double kLseBound = 2 * (2e-3 + 20 * 0x1p-19);

void require_near(const std::string& name, const ResultDistance& apart) {
  if (apart.relative_rms <= kRelativeBound && apart.lse_max <= kLseBound) return;
  throw Error(ErrorCode::internal,
              fmt::format("{} over all GPUs is off from one GPU by {:.2g} of out and {:.2g} of lse",
                          name, apart.relative_rms, apart.lse_max));
}

}  // namespace

BenchResults context_parallel_suite(const BenchArguments& arguments) {
  const std::vector<Device> gpus = all_gpus(arguments);
  const std::vector<Workload> workloads = context_workloads(arguments);
  const Ranks ranks = nccl_group(gpus);
  const double link = link_gigabytes_per_second(ranks, gpus);
  BenchResults results{Table({"mask", "tokens", "GPUs", "one GPU", "all GPUs", "ratio", "sharding",
                              "sent", "of a ring", "off by", "link"})};
  Progress progress(workloads.size(), arguments.json);
  for (const Workload& workload : workloads) {
    progress.step(workload.spec.name);
    const Measured one = measure_one(workload, gpus[0], arguments.timing.budget_ms);
    const Measured all = measure_all(workload, ranks, gpus, arguments.timing.budget_ms);
    const ResultDistance apart = distance(one.out, one.lse, all.out, all.lse);
    require_near(workload.spec.name, apart);
    const double ratio = one.samples.median_ms / all.samples.median_ms;
    const double share = static_cast<double>(all.bytes_sent) /
                         static_cast<double>(all.traffic.bytes_of_full_ring) /
                         static_cast<double>(ranks.size());
    results.table.add(
        {workload.spec.name, std::to_string(workload.shape.q_len), std::to_string(ranks.size()),
         format_ms(one.samples.median_ms), format_ms(all.samples.median_ms),
         fmt::format("{:.3f}", ratio), std::string(to_string(all.sharding)),
         format_bytes(static_cast<std::uint64_t>(all.bytes_sent)),
         fmt::format("{:.1f} %", 100 * share), fmt::format("{:.1e}", apart.relative_rms),
         fmt::format("{:.0f} GB/s", link)});
    results.rows.push_back({{"variant", workload.spec.name},
                            {"heads", workload.shape.num_q_heads},
                            {"kv_heads", workload.shape.num_kv_heads},
                            {"q_len", workload.shape.q_len},
                            {"head_dim", workload.spec.head_dim},
                            {"block", workload.spec.block},
                            {"gpus", ranks.size()},
                            {"nccl", nccl_version()},
                            {"link_gigabytes_per_second", link},
                            {"one_gpu", to_json(one.samples)},
                            {"all_gpus", to_json(all.samples)},
                            {"ratio", ratio},
                            {"sharding", to_string(all.sharding)},
                            {"tiles", all.traffic.tiles},
                            {"bytes_sent", all.bytes_sent},
                            {"share_of_full_ring", share},
                            {"workspace_bytes", all.workspace},
                            {"relative_rms", apart.relative_rms},
                            {"lse_max", apart.lse_max}});
  }
  return results;
}

}  // namespace tilewright::cli
