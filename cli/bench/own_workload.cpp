#include "cli/bench/own_workload.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/bench/packed_rows.hpp"
#include "cli/bench/packed_workload.hpp"
#include "cli/inputs.hpp"
#include "cli/random_lengths.hpp"

namespace tilewright::cli {
namespace {

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

void require_own_spec_taken(const std::string& suite, const BenchArguments& arguments) {
  if (!arguments.spec || (suite != "paged" && suite != "splits")) return;
  throw Error(ErrorCode::usage, fmt::format("--suite {} takes no --spec", suite),
              "--suite serving measures a packed or paged spec on the suite's batches, or with "
              "--inputs on lengths of your own");
}

void require_no_inputs(const std::string& suite, const BenchArguments& arguments) {
  if (arguments.inputs.empty() || suite == "dense" || suite == "serving" || suite == "backward") {
    return;
  }
  throw Error(ErrorCode::usage, fmt::format("--suite {} takes no --inputs", suite),
              "leave --suite or --inputs out");
}

void require_no_filter(const std::string& suite, const BenchArguments& arguments) {
  if (arguments.only.empty() || std::ranges::count(suites_of_calls(), suite) > 0) return;
  throw Error(ErrorCode::usage, fmt::format("--suite {} takes no --only", suite),
              "--only chooses among the rows of " + one_of(suites_of_calls()));
}

}  // namespace

Workload own_workload(const BenchArguments& arguments) {
  if (!arguments.spec) {
    throw Error(ErrorCode::usage, "--inputs are those of a spec of your own", "add --spec");
  }
  if (!is_random(arguments.inputs)) {
    throw Error(ErrorCode::usage,
                fmt::format("--inputs \"{}\" is no random:..., and bench measures random inputs",
                            arguments.inputs),
                "--buffers takes buffers from a file");
  }
  for (const auto& [name, size] :
       {std::pair{"--batch", arguments.batch}, std::pair{"--heads", arguments.heads},
        std::pair{"--kv-heads", arguments.kv_heads}, std::pair{"--q-len", arguments.q_len},
        std::pair{"--kv-len", arguments.kv_len}}) {
    if (size == 0) continue;
    throw Error(ErrorCode::usage, fmt::format("{} and --inputs both give sizes", name),
                fmt::format("leave {} out", name));
  }
  if (arguments.spec->is_packed()) {
    return packed_workload(*arguments.spec, parse_random_packed(*arguments.spec, arguments.inputs));
  }
  const Shape shape = parse_random_dense(arguments.inputs);
  validate(shape);
  return {*arguments.spec, shape};
}

void require_suite_takes(const std::string& suite, const BenchArguments& arguments) {
  if (std::ranges::count(bench_suites(), suite) == 0) return;  // which is said later
  require_own_spec_taken(suite, arguments);
  require_no_inputs(suite, arguments);
  require_layout(suite, arguments);
  require_no_filter(suite, arguments);
  if (arguments.spec && !arguments.spec->is_packed()) {
    refuse_batch_invariant(arguments.batch_invariant);
  } else if (arguments.batch_invariant && suite == "splits") {
    throw Error(ErrorCode::usage, "--suite splits takes no --batch-invariant",
                "each of its rows is measured next to the same call unsplit");
  } else if (arguments.batch_invariant && !makes_packed_calls(suite) && !arguments.spec) {
    throw Error(
        ErrorCode::usage,
        fmt::format("--suite {} makes dense calls, and --batch-invariant is for packed ones",
                    suite),
        "leave --batch-invariant out, or take --suite serving");
  }
}

}  // namespace tilewright::cli
