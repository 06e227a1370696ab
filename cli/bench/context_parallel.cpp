// One sequence over all GPUs of the machine, compared with one GPU.
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
                "--suite context_parallel measures its own masks, in bf16 with batch 1",
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
    spec.gradients = {"q", "k", "v"};
    // The default block, for both passes: Hopper's backward kernel has no tiles for forward's
    // fastest.
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

std::string_view name_of(Pass pass) {
  return pass == Pass::forward ? "forward" : "backward";
}

// Times and results of one way to compute a pass of the whole.
struct Measured {
  Samples samples;
  ContextTraffic traffic = {};
  std::int64_t bytes_sent = 0;  // by all ranks
  std::int64_t workspace = 0;   // of rank 0
  Sharding sharding = Sharding::contiguous;
};

SnippetInputs inputs_of(const Workload& workload, const DocumentIds& documents) {
  return workload.spec.buffers.empty() ? SnippetInputs{} : documents.inputs();
}

std::unique_ptr<GpuMemory> workspace_of(std::int64_t bytes, const Device& gpu, TensorView& view) {
  auto memory = std::make_unique<GpuMemory>(gpu.index(), bytes);
  view = TensorView::contiguous(memory->data(), DType::u8, {bytes});
  return memory;
}

// Passes of the whole sequence on one GPU.
class OneGpu {
 public:
  OneGpu(const Workload& workload, const Device& gpu)
      : attention_(workload.spec, {.device = gpu, .kernels = command_line_toolchain()}),
        rows_(workload, whole_shard(workload.shape), gpu),
        documents_(workload.shape.kv_len, gpu.index()),
        bindings_(attention_.bind(inputs_of(workload, documents_))),
        last_(gpu.index(), 1) {
    if (!workload.spec.mask_mod.empty()) {
      mask_ = attention_.block_mask(workload.shape, bindings_, {.transposed = true});
    }
    workspace_ = workspace_of(attention_.workspace_size(workload.shape, Pass::backward), gpu,
                              backward_.workspace);
  }

  Measured measure(Pass pass, double budget_ms, WholeResults& results) const {
    const auto run = [&](int calls) {
      const Stopwatch watch;
      for (int i = 0; i < calls; ++i) enqueue(pass);
      wait();
      return watch.ms() / calls;
    };
    run(1);
    const int calls = calls_of_sample(run(1));
    Measured measured;
    measured.samples = sample(budget_ms, [&] { run(calls); });
    measured.samples.median_ms /= calls;
    measured.samples.least_ms /= calls;
    rows_.read_results(pass, results);
    return measured;
  }

 private:
  void enqueue(Pass pass) const {
    if (pass == Pass::backward && mask_) {
      attention_.backward(rows_.backward_tensors(), *mask_, bindings_, {}, backward_);
    } else if (pass == Pass::backward) {
      attention_.backward(rows_.backward_tensors(), bindings_, {}, backward_);
    } else if (mask_) {
      attention_.forward(rows_.tensors(), *mask_, bindings_);
    } else {
      attention_.forward(rows_.tensors(), bindings_);
    }
  }

  // A read stands in the default stream's order.
  void wait() const {
    char byte = 0;
    last_.read(&byte, 1);
  }

  Attention attention_;
  SequenceRows rows_;
  DocumentIds documents_;
  Bindings bindings_;
  GpuMemory last_;
  std::optional<BlockMask> mask_;
  std::unique_ptr<GpuMemory> workspace_;
  BackwardOptions backward_;
};

// One rank's part of both passes.
class RankCalls {
 public:
  RankCalls(const Workload& workload, std::shared_ptr<Communicator> communicator, const Device& gpu)
      : communicator_(std::move(communicator)),
        context_(workload.spec, communicator_,
                 {.device = gpu, .kernels = command_line_toolchain()}),
        documents_(workload.shape.kv_len, gpu.index()),
        bindings_(context_.bind(workload.shape, inputs_of(workload, documents_))),
        plan_(context_.plan(workload.shape, bindings_)),
        rows_(workload, plan_.shards(), gpu) {
    workspace_ = workspace_of(std::max(context_.workspace_size(plan_, Pass::forward),
                                       context_.workspace_size(plan_, Pass::backward)),
                              gpu, options_.workspace);
  }

  // Each rank writes its own rows of the results, and gives what it measured itself.
  Measured measure(Pass pass, double budget_ms, WholeResults& results) const {
    Measured measured = {.traffic = plan_.traffic(), .sharding = plan_.sharding()};
    measured.samples = sample_together(
        *communicator_, budget_ms,
        [&] {
          if (pass == Pass::forward) {
            context_.forward(rows_.tensors(), plan_, bindings_, options_);
          } else {
            context_.backward(rows_.backward_tensors(), plan_, bindings_, {}, options_);
          }
        },
        [&] { context_.wait(); });
    rows_.read_results(pass, results);
    measured.workspace = context_.workspace_size(plan_, pass);
    measured.bytes_sent = sent_by_all(pass == Pass::forward ? measured.traffic.bytes_sent
                                                            : measured.traffic.backward_bytes_sent);
    return measured;
  }

 private:
  std::int64_t sent_by_all(std::int64_t mine) const {
    const std::vector<std::byte> all =
        communicator_->all_gather(std::as_bytes(std::span(&mine, 1)));
    std::vector<std::int64_t> sent(all.size() / sizeof(std::int64_t));
    std::memcpy(sent.data(), all.data(), all.size());
    return std::accumulate(sent.begin(), sent.end(), std::int64_t{0});
  }

  std::shared_ptr<Communicator> communicator_;
  ContextParallel context_;
  DocumentIds documents_;
  Bindings bindings_;
  ContextPlan plan_;
  SequenceRows rows_;
  std::unique_ptr<GpuMemory> workspace_;
  ContextCallOptions options_;
};

// Each call rounds P to bf16 before it meets V, and out; the divided one rounds parts too. Five
// roundings of at most 2^-9, evenly distributed and independent, are 2^-9 sqrt(5 / 3) = 2.5e-3 of
// out, whose own size is that of a sum with as many signs. The bound is three times that. A shard
// that is missing or in a wrong place is off by 1.
constexpr double kRelativeBound = 7.5e-3;
// verify/judge.hpp: 2e-3 + 2^-19 |lse| for each of the two, |lse| below 20.
constexpr double kLseBound = 2 * (2e-3 + 20 * 0x1p-19);

// Of gradients: P and dS of each call, the parts and their sum are eight such roundings, 2^-9
// sqrt(8 / 3) = 3.2e-3. Three times that.
constexpr double kRelativeBoundOfGradients = 9.6e-3;

void require_near(const std::string& name, Pass pass, const ResultDistance& apart) {
  const bool is_forward = pass == Pass::forward;
  const double bound = is_forward ? kRelativeBound : kRelativeBoundOfGradients;
  if (apart.relative_rms <= bound && apart.lse_max <= kLseBound) return;
  throw Error(
      ErrorCode::internal,
      fmt::format("{} {} over all GPUs is off from one GPU by {:.2g} of {} and {:.2g} of lse", name,
                  name_of(pass), apart.relative_rms, is_forward ? "out" : "a gradient",
                  apart.lse_max));
}

void add_row(BenchResults& results, const Workload& workload, Pass pass, const Measured& one,
             const Measured& all, const ResultDistance& apart, std::size_t gpus, double link) {
  const double ratio = one.samples.median_ms / all.samples.median_ms;
  // Backward sends k and v, and their gradients back.
  const double ring = static_cast<double>(all.traffic.bytes_of_full_ring) *
                      (pass == Pass::forward ? 1 : 2) * static_cast<double>(gpus);
  const double share = static_cast<double>(all.bytes_sent) / ring;
  results.table.add({workload.spec.name, std::string(name_of(pass)),
                     std::to_string(workload.shape.q_len), std::to_string(gpus),
                     format_ms(one.samples.median_ms), format_ms(all.samples.median_ms),
                     fmt::format("{:.3f}", ratio), std::string(to_string(all.sharding)),
                     format_bytes(static_cast<std::uint64_t>(all.bytes_sent)),
                     fmt::format("{:.1f} %", 100 * share),
                     fmt::format("{:.1e}", apart.relative_rms), fmt::format("{:.0f} GB/s", link)});
  results.rows.push_back({{"variant", workload.spec.name},
                          {"pass", name_of(pass)},
                          {"heads", workload.shape.num_q_heads},
                          {"kv_heads", workload.shape.num_kv_heads},
                          {"q_len", workload.shape.q_len},
                          {"head_dim", workload.spec.head_dim},
                          {"block", workload.spec.block},
                          {"gpus", gpus},
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

// Both passes of a mask, on one GPU and then on all.
void measure_mask(const Workload& workload, const Ranks& ranks, const std::vector<Device>& gpus,
                  double budget_ms, double link, BenchResults& results) {
  constexpr Pass kPasses[] = {Pass::forward, Pass::backward};
  WholeResults whole(workload), shared(workload);
  Measured one[2], all[2];
  {
    const OneGpu alone(workload, gpus[0]);
    for (int i : {0, 1}) one[i] = alone.measure(kPasses[i], budget_ms, whole);
  }
  on_ranks(ranks, [&](int rank) {
    const auto place = static_cast<std::size_t>(rank);
    const RankCalls calls(workload, ranks[place], gpus[place]);
    for (int i : {0, 1}) {
      const Measured mine = calls.measure(kPasses[i], budget_ms, shared);
      if (rank == 0) all[i] = mine;
    }
  });
  for (int i : {0, 1}) {
    const ResultDistance apart = distance(kPasses[i], whole, shared);
    require_near(workload.spec.name, kPasses[i], apart);
    add_row(results, workload, kPasses[i], one[i], all[i], apart, ranks.size(), link);
  }
}

}  // namespace

BenchResults context_parallel_suite(const BenchArguments& arguments) {
  const std::vector<Device> gpus = all_gpus(arguments);
  const std::vector<Workload> workloads = context_workloads(arguments);
  const Ranks ranks = nccl_group(gpus);
  const double link = link_gigabytes_per_second(ranks, gpus);
  BenchResults results{Table({"mask", "pass", "tokens", "GPUs", "one GPU", "all GPUs", "ratio",
                              "sharding", "sent", "of a ring", "off by", "link"})};
  Progress progress(workloads.size(), arguments.json);
  for (const Workload& workload : workloads) {
    progress.step(workload.spec.name);
    measure_mask(workload, ranks, gpus, arguments.timing.budget_ms, link, results);
  }
  return results;
}

}  // namespace tilewright::cli
