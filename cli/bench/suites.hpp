#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/bench/measure.hpp"
#include "cli/bench/timing.hpp"
#include "cli/output.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/shape.hpp"

namespace tilewright::cli {

/// What a bench measures. Sizes that are 0 are chosen by the suite.
struct BenchArguments {
  Device device = Device::cpu();
  std::optional<Spec> spec;  ///< the user's own, in place of the suite's
  std::string buffers;       ///< a safetensors file with its buffers; empty: random ones
  std::optional<DType> dtype;
  std::string inputs;  ///< random:..., the sizes of the spec's call; empty: chosen by the suite
  std::string only;    ///< text that a row's description holds; empty: all rows
  std::int64_t head_dim = 0;
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::vector<int> threads;  ///< empty: every thread of the machine; of the CPU only
  std::uint64_t seed = 0;
  bool batch_invariant = false;  ///< of packed calls
  std::int64_t splits = 0;       ///< PlanOptions::splits, ForwardOptions::splits
  bool deterministic = false;    ///< of backward: BackwardOptions::deterministic
  std::int64_t repeats = 0;      ///< of backward: calls whose gradients' bits must be equal
  Timing timing;
  bool json = false;                 ///< only for how progress is shown
  std::set<std::string> given = {};  ///< the options that stand on the command line
};

/// The same results for people and for programs.
struct BenchResults {
  Table table;
  Json rows = Json::array();
};

/// The names of the suites: "dense", "mods", ...
const std::vector<std::string>& bench_suites();

/// Those whose rows are calls, which --list prints and among which --only chooses.
const std::vector<std::string>& suites_of_calls();

/// @throws Error with code usage for an unknown suite
BenchResults run_suite(const std::string& suite, const BenchArguments& arguments);

/// Numbers of threads that a CPU's rows are for; on a GPU one row.
std::vector<int> thread_counts(const BenchArguments& arguments);

// The suites.
BenchResults forward_suite(const std::vector<Workload>& workloads, const BenchArguments& arguments);
BenchResults masks_suite(const BenchArguments& arguments);
BenchResults launch_suite(const BenchArguments& arguments);
BenchResults compile_suite(const BenchArguments& arguments);
BenchResults context_parallel_suite(const BenchArguments& arguments);
BenchResults start_suite(const BenchArguments& arguments);
BenchResults backward_suite(const BenchArguments& arguments);
BenchResults splits_suite(const BenchArguments& arguments);

/// One row of forward_suite: facts, times and rates of a call; of a packed one the plan's time too.
/// @param kept share of the elements that mask_mod keeps
Json forward_row(const PreparedCall& call, const Timing& timing, double kept);

/// The same where the time is known.
Json forward_row(const PreparedCall& call, const Timing& timing, double kept,
                 const Samples& samples);

}  // namespace tilewright::cli
