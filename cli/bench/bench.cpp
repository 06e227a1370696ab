#include <iostream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/arguments.hpp"
#include "cli/bench/own_workload.hpp"
#include "cli/bench/packed_rows.hpp"
#include "cli/bench/serve.hpp"
#include "cli/bench/start.hpp"
#include "cli/bench/suite_options.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/machine.hpp"
#include "cli/numbers.hpp"
#include "cli/output.hpp"
#include "cli/random_lengths.hpp"
#include "cli/verb.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/thread_pool.hpp"

namespace tilewright::cli {
namespace {

constexpr int kMostThreads = 1024;

DType parse_dtype(const std::string& name) {
  const std::vector<std::string> names = {"f32", "f16", "bf16"};
  for (const std::string& known : names) {
    if (name == known) return *dtype_from_string(name);
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = "allowed: " + one_of(names);
  throw Error(ErrorCode::usage, fmt::format("--dtype \"{}\" is no dtype of q, k and v", name),
              hint);
}

std::vector<int> parse_threads(const std::string& text) {
  std::vector<int> threads;
  for (const std::string& part : split_at_commas(text)) {
    threads.push_back(static_cast<int>(parse_whole(part, "--threads", {1, kMostThreads})));
  }
  return threads;
}

class BenchVerb : public Verb {
 public:
  BenchVerb()
      : Verb("bench", "measure time and throughput on this machine",
             "tilewright bench --suite growth --device cpu --q-len 8192 --threads 1,2,4") {}

  void declare(CLI::App& app) override {
    app.add_option("--suite", suite_,
                   "dense: plain attention (default); mods: variants; growth: over lengths that "
                   "double up to --q-len; masks: block masks; serving: packed calls; "
                   "paged: decoding and chunks of prompts over pages; launch: "
                   "host time of a call; "
                   "compile: from a new snippet, from disk; start: a process's first result; "
                   "context_parallel: one sequence over all GPUs; backward: gradients of variants; "
                   "splits: few q tiles over many columns, next to the same calls unsplit");
    app.add_option("--spec", spec_, "measure this spec in place of the suite's");
    app.add_option("--inputs", arguments_.inputs,
                   "sizes of --spec: random:B,HQ,HKV,SQ,SKV, or random:HQ,HKV/Q:KV,... of a packed "
                   "spec");
    app.add_option("--buffers", arguments_.buffers,
                   "a safetensors file with buffers of --spec that are not to be random");
    app.add_option("--only", arguments_.only,
                   "rows of " + one_of(suites_of_calls()) +
                       " whose text (variant, dtype, head_dim, sizes) holds this: \"causal bf16 "
                       "d128\"; one that no row holds lists them");
    app.add_option("--device", device_, "auto, cpu, cuda or cuda:N (default auto)");
    app.add_flag("--hot", arguments_.timing.hot,
                 "on a GPU: calls back to back, in place of an L2 that is flushed before each");
    app.add_option("--dtype", dtype_,
                   "f32, f16 or bf16, where the suite leaves it open (default f32; on a GPU bf16)");
    add_whole(app, "--head-dim", arguments_.head_dim, {1, 1 << 16},
              "where the suite leaves it open (default 64; on a GPU 128)");
    add_whole(app, "--batch", arguments_.batch, kAnySize, "(default: what suits the suite)");
    add_whole(app, "--heads", arguments_.heads, kAnySize,
              "query heads (default: what suits the suite)");
    add_whole(app, "--kv-heads", arguments_.kv_heads, kAnySize,
              "(default: as many as query heads)");
    add_whole(app, "--q-len", arguments_.q_len, kAnySize, "(default: what suits this machine)");
    add_whole(app, "--kv-len", arguments_.kv_len, kAnySize, "(default: as --q-len)");
    app.add_option("--threads", threads_, "of the CPU: numbers of threads, 1,2,4 (default: all)");
    add_positive(app, "--budget-ms", arguments_.timing.budget_ms,
                 "measuring time for a row (default 500)");
    add_whole(app, "--seed", arguments_.seed, kAnySeed, "of random contents (default 0)");
    app.add_flag("--batch-invariant", arguments_.batch_invariant,
                 "of packed calls: the bits of a row depend on its own sequence alone");
    add_whole(app, "--splits", arguments_.splits, kAnyIndex,
              "parts that a GPU cuts columns into, where it can (default: by the calls' sizes)");
    app.add_flag("--deterministic", arguments_.deterministic,
                 "of backward: calls that promise equal bits over runs");
    add_whole(app, "--repeats", arguments_.repeats, {0, 1 << 20},
              "of backward, after its times: so many more calls, whose gradients must have equal "
              "bits (default 0)");
    app.add_flag("--list", list_, "the specs and sizes of the suite, as JSON; measures nothing");
    app.add_flag("--serve", serve_, "answers requests on stdin, one JSON object a line");
    add_whole(app, "--keep", keep_, {1, 1 << 20},
              "of --serve: rows whose data stay on the device (default 1)")
        ->needs("--serve");
    app.add_option("--start-sample", sample_.what)->group("");  // what suite start starts itself as
    app.add_option("--start-cubin", sample_.cubin)->group("");
    add_json_flag(app, arguments_.json);
    app.callback([this, &app] {
      for (const CLI::Option* option : app.get_options()) {
        if (option->count() > 0) arguments_.given.insert(option->get_name());
      }
    });
  }

  std::vector<std::string> choices(std::string_view argument) const override {
    return argument == "--suite" ? bench_suites() : std::vector<std::string>();
  }

  ExitStatus execute() override {
    if (!sample_.what.empty()) {
      sample_.device = device_;
      sample_.spec = spec_;
      print_json(run_start_sample(sample_));
      return kDone;
    }
    read_arguments();
    if (serve_) {
      serve(std::cin, arguments_, keep_);
    } else if (list_) {
      list();
    } else {
      report(run_suite(suite_, arguments_));
    }
    return kDone;
  }

 private:
  void read_arguments() {
    arguments_.device = Device::parse(device_);
    if (serve_) return require_serve_takes(arguments_);
    if (!spec_.empty()) {
      arguments_.spec = spec_from_file(spec_);
      // The suite of packed calls measures one of a spec's own likewise.
      const bool is_packed = arguments_.spec->is_packed() && !arguments_.inputs.empty();
      if (is_packed && suite_ == "dense") suite_ = "serving";
    }
    if (!dtype_.empty()) arguments_.dtype = parse_dtype(dtype_);
    arguments_.threads = parse_threads(threads_);
    require_suite_takes(suite_, arguments_);
  }

  void list() const {
    Json rows = Json::array();
    for (const auto& [spec, shape, lengths] : workloads(suite_, arguments_)) {
      Json row = {{"spec", Json::parse(to_json(spec))}};
      if (lengths) {
        row["inputs"] = random_text(*lengths);
      } else {
        row.update({{"batch", shape.batch},
                    {"heads", shape.num_q_heads},
                    {"kv_heads", shape.num_kv_heads},
                    {"q_len", shape.q_len},
                    {"kv_len", shape.kv_len}});
      }
      rows.push_back(std::move(row));
    }
    print_json(rows);
  }

  void report(const BenchResults& results) const {
    const CpuFacts cpu = cpu_facts();
    const int threads = ThreadPool::default_size();  // of a call
    const Device& device = arguments_.device;
    const bool gpu = on_gpu(arguments_);
    if (arguments_.json) {
      Json facts = {{"suite", suite_},
                    {"device", device.name()},
                    {"cpu", {{"model", cpu.model}, {"isa", cpu.isa}, {"threads", threads}}}};
      if (gpu) facts["gpu"] = to_json(gpu_facts(device));
      facts["rows"] = results.rows;
      return print_json(facts);
    }
    const std::string machine =
        gpu ? describe(gpu_facts(device))
            : fmt::format("{}, {}, {} threads", cpu.model, cpu.isa, threads);
    const bool of_calls = suite_ == "dense" || suite_ == "mods" || suite_ == "growth" ||
                          suite_ == "splits" || makes_packed_calls(suite_);
    const std::string timing =
        of_calls ? fmt::format(", by {}", describe_timing(device, arguments_.timing)) : "";
    print(fmt::format("{}; medians{}\n{}", machine, timing, results.table.text()));
  }

  std::string suite_ = "dense";
  std::string spec_;
  std::string device_ = "auto";
  std::string dtype_;
  std::string threads_;
  bool list_ = false;
  bool serve_ = false;
  std::size_t keep_ = 1;
  StartSample sample_;
  BenchArguments arguments_;
};

}  // namespace

std::unique_ptr<Verb> make_bench_verb() {
  return std::make_unique<BenchVerb>();
}

}  // namespace tilewright::cli
