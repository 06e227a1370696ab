#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_suites.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "generator/spec_json.hpp"

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
    const std::int64_t count = parse_integer(part, "--threads");
    if (count < 1 || count > kMostThreads) {
      throw Error(ErrorCode::usage,
                  fmt::format("--threads {} is not from 1 to {}", count, kMostThreads));
    }
    threads.push_back(static_cast<int>(count));
  }
  return threads;
}

class BenchVerb : public Verb {
 public:
  BenchVerb()
      : Verb("bench", "measure time and throughput on this machine",
             "tilewright bench --suite growth --q-len 8192 --threads 1,2,4") {}

  void declare(CLI::App& app) override {
    app.add_option("--suite", suite_,
                   "dense: plain attention (default); mods: variants; growth: over lengths that "
                   "double up to --q-len; masks: block masks; launch: host time of a call; "
                   "compile: from a new snippet, from disk");
    app.add_option("--spec", spec_, "measure this spec in place of the suite's");
    app.add_option("--dtype", dtype_, "f32, f16 or bf16, where the suite leaves it open");
    app.add_option("--head-dim", arguments_.head_dim,
                   "where the suite leaves it open (default 64)");
    app.add_option("--batch", arguments_.batch, "(default 1)");
    app.add_option("--heads", arguments_.heads, "query heads (default 8)");
    app.add_option("--kv-heads", arguments_.kv_heads, "(default: as many as query heads)");
    app.add_option("--q-len", arguments_.q_len, "(default: what suits this machine)");
    app.add_option("--kv-len", arguments_.kv_len, "(default: as --q-len)");
    app.add_option("--threads", threads_, "numbers of threads, 1,2,4 (default: all)");
    app.add_option("--budget-ms", arguments_.budget_ms, "measuring time for a row (default 500)");
    app.add_option("--seed", arguments_.seed, "of random contents (default 0)")
        ->check(not_negative());
    add_json_flag(app, arguments_.json);
  }

  ExitStatus execute() override {
    if (!spec_.empty()) arguments_.spec = spec_from_file(spec_);
    arguments_.dtype = parse_dtype(dtype_);
    arguments_.threads = parse_threads(threads_);
    const BenchResults results = run_suite(suite_, arguments_);
    const CpuFacts cpu = cpu_facts();
    if (arguments_.json) {
      print_json({{"suite", suite_},
                  {"cpu", {{"model", cpu.model}, {"isa", cpu.isa}, {"threads", cpu.threads}}},
                  {"rows", results.rows}});
    } else {
      print(fmt::format("{}, {}, {} threads; medians\n{}", cpu.model, cpu.isa, cpu.threads,
                        results.table.text()));
    }
    return kDone;
  }

 private:
  std::string suite_ = "dense";
  std::string spec_;
  std::string dtype_ = "f32";
  std::string threads_;
  BenchArguments arguments_;
};

}  // namespace

std::unique_ptr<Verb> make_bench_verb() {
  return std::make_unique<BenchVerb>();
}

}  // namespace tilewright::cli
