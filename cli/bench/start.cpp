#include "cli/bench/start.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file_io.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/call.hpp"
#include "cli/progress.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/compile/process.hpp"
#include "runtime/compile/temporary_directory.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/empty_kernel.hpp"

namespace tilewright::cli {
namespace {

constexpr int kStarts = 9;  // of each kind; they take turns
// The driver goes on for a while with what a process left, and so does its worker: on an H200's
// machine a kernel from disk took 4 ms less with a pause.
constexpr std::chrono::milliseconds kPause(500);
constexpr double kBudgetFactor = 40;  // a start takes a second where a call takes milliseconds
constexpr Shape kShape{
    .batch = 1, .num_q_heads = 8, .num_kv_heads = 8, .q_len = 1024, .kv_len = 1024};

// A clock whose steps have names.
class Steps {
 public:
  void done(const std::string& name) {
    const double now = watch_.ms();
    steps_[name] = now - last_;
    last_ = now;
  }
  Json facts() const { return {{"ms", last_}, {"steps", steps_}}; }

 private:
  Stopwatch watch_;
  double last_ = 0;
  Json steps_ = Json::object();
};

// The host's tensors of a call; made before the clock runs.
struct HostCall {
  explicit HostCall(const Spec& spec)
      : inputs(verify::random_inputs(spec, kShape, 1)), problem(inputs.problem()) {
    std::vector<std::int64_t> extents(problem.q.extents().begin(), problem.q.extents().end());
    extents[3] = spec.value_head_dim();
    out = Tensor::zeros(spec.output_dtype(), extents);
    const std::initializer_list<std::int64_t> rows = {kShape.batch, kShape.num_q_heads,
                                                      kShape.q_len};
    if (spec.outputs.lse) lse = Tensor::zeros(DType::f32, rows);
    if (spec.outputs.max_scores) max_scores = Tensor::zeros(DType::f32, rows);
    if (spec.outputs.weights) {
      weights = Tensor::zeros(spec.output_dtype(),
                              {kShape.batch, kShape.num_q_heads, kShape.q_len, kShape.kv_len});
    }
  }

  ForwardTensors tensors() const {
    ForwardTensors tensors{.q = problem.q, .k = problem.k, .v = problem.v, .out = out, .lse = {}};
    if (lse) tensors.lse = lse->view();
    if (max_scores) tensors.max_scores = max_scores->view();
    if (weights) tensors.weights = weights->view();
    return tensors;
  }

  verify::Inputs inputs;
  verify::Problem problem;
  Tensor out;
  std::optional<Tensor> lse;
  std::optional<Tensor> max_scores;
  std::optional<Tensor> weights;
};

Json start_cuda(const StartSample& sample, const HostCall& host) {
  const std::vector<std::byte> cubin = read_file(sample.cubin);
  Steps steps;
  const cuda::Driver& driver = cuda::Driver::get();
  const Device device = Device::parse(sample.device);
  steps.done("driver");
  const cuda::ContextScope scope(driver, device.index());
  steps.done("context");
  cuda::EmptyKernel empty(driver, cubin);
  steps.done("module");
  const StagedCall staged(device, host.tensors(), host.problem.snippet);
  steps.done("inputs");
  empty.launch();
  staged.wait();
  steps.done("launch");
  return steps.facts();
}

Json start_attention(const StartSample& sample, const Spec& spec, const HostCall& host) {
  Steps steps;
  const Device device = Device::parse(sample.device);
  steps.done("device");
  const Attention attention(spec, {.device = device, .kernels = command_line_toolchain()});
  steps.done("kernels");
  const StagedCall staged(device, host.tensors(), host.problem.snippet);
  const Bindings bindings = attention.bind(staged.inputs());
  steps.done("inputs");
  if (spec.mask_mod.empty()) {
    attention.forward(staged.tensors(), bindings);
  } else {
    const BlockMask mask = attention.block_mask(kShape, bindings);
    steps.done("mask");
    attention.forward(staged.tensors(), mask, bindings);
    staged.wait();
  }
  staged.wait();
  steps.done("forward");
  return steps.facts();
}

// Starts processes and collects what they took.
class Starter {
 public:
  Starter(const Spec& spec, const Device& device) : folder_("start"), device_(device) {
    write("spec.json", to_json(spec));
    if (device.kind() == Device::Kind::cpu) return;
    const cuda::DeviceFacts gpu = cuda::device_facts(cuda::Driver::get(), device.index());
    const std::vector<std::byte> cubin = cuda::EmptyKernel::compile(gpu.target());
    write("empty.cubin", {reinterpret_cast<const char*>(cubin.data()), cubin.size()});
  }

  Json start(const std::string& what, const TemporaryDirectory& cache) const {
    std::this_thread::sleep_for(kPause);
    ProcessOptions options;
    options.environment = {{"TILEWRIGHT_CACHE", cache.path().string()}};
    const std::vector<std::string> command = {
        std::filesystem::read_symlink("/proc/self/exe").string(),
        "bench",
        "--suite",
        "start",
        "--start-sample",
        what,
        "--device",
        device_.name(),
        "--spec",
        path("spec.json"),
        "--start-cubin",
        path("empty.cubin")};
    const ProcessResult result = run_process(command, options);
    if (!result.succeeded()) {
      throw Error(
          {.code = ErrorCode::device,
           .message = fmt::format("a process of the suite ended with {}", result.describe_end()),
           .place = {},
           .notes = {result.errors},
           .hint = "`tilewright run` shows what is wrong"});
    }
    return Json::parse(result.output);
  }

 private:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  TemporaryDirectory folder_;
  Device device_;
};

// Samples of one kind of start.
class Starts {
 public:
  void add(const Json& facts) {
    total_.push_back(facts["ms"].get<double>());
    for (const auto& [name, ms] : facts["steps"].items()) {
      if (!steps_.contains(name)) names_.push_back(name);
      steps_[name].push_back(ms.get<double>());
    }
  }
  Samples samples() const { return summarize(total_); }
  Json steps() const {
    Json medians = Json::object();
    for (const std::string& name : names_) medians[name] = summarize(steps_.at(name)).median_ms;
    return medians;
  }

 private:
  std::vector<double> total_;
  std::vector<std::string> names_;  // in their order
  std::map<std::string, std::vector<double>> steps_;
};

std::string steps_text(const Json& steps) {
  std::string text;
  for (const auto& [name, ms] : steps.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_ms(ms.get<double>()));
  }
  return text;
}

}  // namespace

Json run_start_sample(const StartSample& sample) {
  const Spec spec = spec_from_file(sample.spec);
  const HostCall host(spec);
  if (sample.what == "cuda") return start_cuda(sample, host);
  if (sample.what == "attention") return start_attention(sample, spec, host);
  throw Error(ErrorCode::usage, fmt::format("there is no start of \"{}\"", sample.what));
}

BenchResults start_suite(const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  BenchResults results{
      Table({"variant", "start", "to the first result", "above CUDA's own", "steps"})};
  std::vector<Spec> specs;
  for (Spec& spec : mod_variants(dtype_of(arguments), head_dim_of(arguments))) {
    if (spec.name == "alibi_causal") specs.push_back(std::move(spec));
  }
  specs = own_or(arguments, specs);
  Progress progress(specs.size() * kStarts, arguments.json);
  for (const Spec& spec : specs) {
    const Starter starter(spec, arguments.device);
    Starts cuda, fresh, disk;
    const Stopwatch total;
    for (int i = 0; i < kStarts; ++i) {
      if (i > 0 && total.ms() > kBudgetFactor * arguments.timing.budget_ms) break;
      progress.step(fmt::format("{}, start {}", spec.name, i + 1));
      const TemporaryDirectory cache("start-cache");
      if (gpu) cuda.add(starter.start("cuda", cache));
      fresh.add(starter.start("attention", cache));
      disk.add(starter.start("attention", cache));
    }
    const double cuda_ms = gpu ? cuda.samples().median_ms : 0;
    const auto add = [&](const std::string& start, const Starts& starts, bool is_ours) {
      const Samples samples = starts.samples();
      const double beside = samples.median_ms - cuda_ms;
      results.table.add({spec.name, start, format_ms(samples.median_ms),
                         is_ours && gpu ? format_ms(beside) : "-", steps_text(starts.steps())});
      Json row = {{"variant", spec.name},
                  {"device", arguments.device.name()},
                  {"start", start},
                  {"beside_ms", is_ours && gpu ? Json(beside) : Json()},
                  {"steps", starts.steps()}};
      row.update(to_json(samples));
      results.rows.push_back(std::move(row));
    };
    if (gpu) add("CUDA alone", cuda, false);
    add("new snippet", fresh, true);
    add("kernel on disk", disk, true);
  }
  return results;
}

}  // namespace tilewright::cli
