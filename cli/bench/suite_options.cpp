#include "cli/bench/suite_options.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/bench/packed_rows.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/inputs.hpp"

namespace tilewright::cli {
namespace {

using Options = std::vector<std::string_view>;

struct SuiteOptions {
  std::string_view suite;
  Options options;
};

// An option that stands in no row is one of every suite.
const std::vector<SuiteOptions>& options_of_suites() {
  static const auto& kRows = *new std::vector<SuiteOptions>{
      {"dense",
       {"--spec", "--inputs", "--buffers", "--only", "--dtype", "--head-dim", "--batch", "--heads",
        "--kv-heads", "--q-len", "--kv-len", "--threads", "--budget-ms", "--seed", "--hot",
        "--splits"}},
      {"mods",
       {"--spec", "--buffers", "--only", "--dtype", "--head-dim", "--batch", "--heads",
        "--kv-heads", "--q-len", "--kv-len", "--threads", "--budget-ms", "--seed", "--hot",
        "--splits"}},
      {"growth",
       {"--spec", "--buffers", "--only", "--dtype", "--head-dim", "--batch", "--heads",
        "--kv-heads", "--q-len", "--threads", "--budget-ms", "--seed", "--hot", "--splits"}},
      {"masks",
       {"--spec", "--buffers", "--batch", "--heads", "--kv-heads", "--q-len", "--kv-len",
        "--threads", "--budget-ms", "--seed"}},
      {"serving",
       {"--spec", "--inputs", "--buffers", "--only", "--dtype", "--head-dim", "--heads",
        "--kv-heads", "--q-len", "--threads", "--budget-ms", "--seed", "--hot", "--batch-invariant",
        "--splits"}},
      {"paged",
       {"--only", "--dtype", "--head-dim", "--heads", "--kv-heads", "--q-len", "--threads",
        "--budget-ms", "--seed", "--hot", "--batch-invariant", "--splits"}},
      {"launch",
       {"--spec", "--buffers", "--threads", "--budget-ms", "--seed", "--batch-invariant",
        "--splits"}},
      {"compile", {"--spec", "--dtype", "--head-dim"}},
      {"start", {"--spec", "--dtype", "--head-dim", "--budget-ms"}},
      {"context_parallel",
       {"--dtype", "--head-dim", "--batch", "--heads", "--kv-heads", "--q-len", "--kv-len",
        "--budget-ms"}},
      {"backward",
       {"--spec", "--inputs", "--buffers", "--only", "--dtype", "--head-dim", "--batch", "--heads",
        "--kv-heads", "--q-len", "--kv-len", "--threads", "--budget-ms", "--seed",
        "--deterministic", "--repeats"}},
      {"splits",
       {"--only", "--dtype", "--head-dim", "--threads", "--budget-ms", "--seed", "--hot",
        "--splits"}},
  };
  return kRows;
}

// A request names its spec and may name sizes. Where it names none, the command line's apply.
const Options& options_of_serve() {
  static const auto& kNames = *new Options{
      "--serve", "--keep",      "--device",          "--json",  "--verbose", "--inputs",
      "--batch", "--heads",     "--kv-heads",        "--q-len", "--kv-len",  "--seed",
      "--hot",   "--budget-ms", "--batch-invariant", "--splits"};
  return kNames;
}

bool holds(const Options& options, std::string_view name) {
  return std::ranges::find(options, name) != options.end();
}

std::vector<std::string> suites_with(std::string_view option) {
  std::vector<std::string> suites;
  for (const SuiteOptions& row : options_of_suites()) {
    if (holds(row.options, option)) suites.emplace_back(row.suite);
  }
  return suites;
}

void require_options_taken(const std::string& suite, const BenchArguments& arguments) {
  for (const std::string& option : arguments.given) {
    const std::vector<std::string> suites = suites_with(option);
    if (suites.empty() || std::ranges::count(suites, suite) > 0) continue;
    throw Error(ErrorCode::usage, fmt::format("--suite {} takes no {}", suite, option),
                fmt::format("leave {} out, or take --suite {}", option, one_of(suites)));
  }
}

// --q-len is the number of rows of a whole batch.
void require_lengths_of_packed(const std::string& suite, const BenchArguments& arguments) {
  if (!makes_packed_calls(suite)) return;
  for (const char* const name : {"--batch", "--kv-len"}) {
    if (!arguments.given.contains(name)) continue;
    throw Error(ErrorCode::usage, fmt::format("{} is for dense calls", name),
                "--q-len is the number of rows of all sequences; --inputs random:HQ,HKV/Q:KV,... "
                "gives each sequence's lengths");
  }
}

void require_layout(const std::string& suite, const BenchArguments& arguments) {
  if (!arguments.spec) return;
  if (!arguments.spec->is_packed()) {
    if (suite != "serving") return;
    throw Error(ErrorCode::usage, "--suite serving measures packed calls, and the spec is dense",
                "write \"layout\": \"packed\" in the spec, or take --suite dense");
  }
  if (suite == "serving" || suite == "launch" || suite == "compile") return;
  if ((suite == "dense" || suite == "backward") && !arguments.inputs.empty()) return;
  throw Error(ErrorCode::usage,
              fmt::format("--suite {} makes dense calls, and the spec is packed", suite),
              "--suite serving measures it on the suite's batches, --inputs "
              "random:HQ,HKV/Q:KV,... on lengths of your own");
}

void require_types_of_spec(const BenchArguments& arguments) {
  if (!arguments.spec) return;
  for (const char* const name : {"--dtype", "--head-dim"}) {
    if (!arguments.given.contains(name)) continue;
    throw Error(ErrorCode::usage,
                fmt::format("{} is for specs of a suite, and --spec has its own", name),
                fmt::format("leave {} out, or write it in the spec", name));
  }
}

void require_packed_for_invariance(const std::string& suite, const BenchArguments& arguments) {
  const bool has_packed_calls = makes_packed_calls(suite) || suite == "splits";
  if (!arguments.batch_invariant || has_packed_calls) return;
  if (arguments.spec) return refuse_batch_invariant(!arguments.spec->is_packed());
  throw Error(
      ErrorCode::usage,
      fmt::format("--suite {} makes dense calls, and --batch-invariant is for packed ones", suite),
      suite == "launch" ? "leave --batch-invariant out, or add --spec with a packed spec"
                        : "leave --batch-invariant out, or take --suite serving");
}

void require_device_takes(const BenchArguments& arguments) {
  if (!arguments.threads.empty() && on_gpu(arguments)) {
    throw Error(
        ErrorCode::usage,
        fmt::format("--threads is of the CPU, and calls run on {}", arguments.device.name()),
        "leave it out, or take --device cpu");
  }
  if (!arguments.timing.hot || on_gpu(arguments)) return;
  throw Error(ErrorCode::usage, "--hot is of GPUs, whose L2 cache is flushed without it",
              "leave it out: a CPU's calls are back to back; or take --device cuda");
}

}  // namespace

void require_suite_takes(const std::string& suite, const BenchArguments& arguments) {
  if (std::ranges::count(bench_suites(), suite) == 0) return;  // which is said later
  require_lengths_of_packed(suite, arguments);
  require_packed_for_invariance(suite, arguments);
  require_options_taken(suite, arguments);
  require_layout(suite, arguments);
  require_types_of_spec(arguments);
  require_device_takes(arguments);
  if (arguments.buffers.empty() || arguments.spec) return;
  throw Error(ErrorCode::usage, "--buffers are those of a spec of your own", "add --spec");
}

void require_serve_takes(const BenchArguments& arguments) {
  for (const std::string& option : arguments.given) {
    if (holds(options_of_serve(), option)) continue;
    throw Error(ErrorCode::usage, fmt::format("bench --serve takes no {}", option),
                "a request has the spec and the sizes of its call (docs/cli.md)");
  }
  require_device_takes(arguments);
}

}  // namespace tilewright::cli
