#include <memory>

#include <fmt/format.h>

#include "cli/bench/plan_timing.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/progress.hpp"
#include "cli/random_lengths.hpp"

namespace tilewright::cli {
namespace {

// Operations per millisecond are a millionth of operations per second in units of 10^9.
double gflops(double operations, double ms) {
  return operations / ms / 1e6;
}

std::vector<std::string> header(bool gpu) {
  std::vector<std::string> names = {"variant", "dtype", "dims", "shape"};
  if (!gpu) names.push_back("threads");
  names.insert(names.end(),
               {"time", gpu ? "TFLOP/s" : "GFLOP/s", "kept", "tiles visited", "tactic"});
  return names;
}

std::vector<std::string> cells(const PreparedCall& call, const Json& row, bool gpu) {
  const Spec& spec = call.attention().spec();
  const Shape& shape = call.shape();
  std::vector<std::string> cells = {spec.name, std::string(to_string(spec.dtype)),
                                    fmt::format("{}/{}", spec.head_dim, spec.value_head_dim()),
                                    fmt::format("{}x{}/{}x{}x{}", shape.batch, shape.num_q_heads,
                                                shape.num_kv_heads, shape.q_len, shape.kv_len)};
  if (!gpu) cells.push_back(std::to_string(row["threads"].get<int>()));
  const double rate = row["gflops"].get<double>() / (gpu ? 1000 : 1);
  cells.insert(cells.end(),
               {format_ms(row["ms"].get<double>()), fmt::format("{:.1f}", rate),
                fmt::format("{:.3f}", row["kept"].get<double>()),
                fmt::format("{:.3f}", call.density()), row["tactic"].get<std::string>()});
  return cells;
}

// K and V of all sequences, once.
double kv_gbytes(const Spec& spec, const verify::PackedLengths& lengths) {
  double columns = 0;
  for (const verify::PackedLengths::Sequence& one : lengths.sequences) {
    columns += static_cast<double>(one.kv_len);
  }
  const std::int64_t of_column = (spec.head_dim + spec.value_head_dim()) * lengths.num_kv_heads *
                                 static_cast<std::int64_t>(size_of(spec.key_value_dtype()));
  return 1e-9 * columns * static_cast<double>(of_column);
}

}  // namespace

Json forward_row(const PreparedCall& call, const Timing& timing, double kept) {
  return forward_row(call, timing, kept, time_forward(call, timing));
}

Json forward_row(const PreparedCall& call, const Timing& timing, double kept,
                 const Samples& samples) {
  const Spec& spec = call.attention().spec();
  const Shape& shape = call.shape();
  const double operations = dense_operations({spec, shape, call.lengths()});
  Json row = {{"variant", spec.name},
              {"dtype", std::string(to_string(spec.dtype))},
              {"head_dim", spec.head_dim},
              {"v_head_dim", spec.value_head_dim()},
              {"batch", shape.batch},
              {"num_q_heads", shape.num_q_heads},
              {"num_kv_heads", shape.num_kv_heads}};
  if (call.lengths()) {
    row.update({{"inputs", random_text(*call.lengths())},
                {"total_q", shape.q_len},
                {"total_kv", shape.kv_len},
                {"kv_gbytes_per_s",
                 kv_gbytes(spec, *call.lengths()) * call.density() / (1e-3 * samples.median_ms)}});
  } else {
    row.update({{"q_len", shape.q_len}, {"kv_len", shape.kv_len}});
  }
  row.update({{"device", call.device().name()},
              {"timing", std::string(describe_timing(call.device(), timing))},
              {"gflops", gflops(operations * kept, samples.median_ms)},
              {"gflops_tiles", gflops(operations * call.density(), samples.median_ms)},
              {"gflops_dense", gflops(operations, samples.median_ms)},
              {"kept", kept},
              {"density", call.density()},
              {"tactic", call.tactic()}});
  row.update(to_json(samples));
  if (call.lengths()) {
    Timing of_plan = timing;
    of_plan.budget_ms /= 10;
    const double ms = time_rebuild(call, of_plan).median_ms;
    row.update({{"plan_ms", ms},
                {"plan_share", ms / samples.median_ms},
                {"plan_timing", std::string(describe_rebuild_timing(call.device()))}});
  }
  return row;
}

BenchResults forward_suite(const std::vector<Workload>& workloads,
                           const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  BenchResults results{Table(header(gpu))};
  const std::vector<int> counts = thread_counts(arguments);
  Progress progress(workloads.size() * counts.size(), arguments.json);
  std::uint64_t seed = arguments.seed;
  for (const Workload& workload : workloads) {
    for (const int count : counts) {
      progress.step(fmt::format("{}, {}", workload.spec.name, workload.shape.describe()));
      ThreadPool threads(count);
      const PreparedCall call(workload, {.device = arguments.device,
                                         .seed = seed++,
                                         .buffers = arguments.buffers,
                                         .threads = &threads,
                                         .batch_invariant = arguments.batch_invariant,
                                         .splits = arguments.splits});
      Json row = forward_row(call, arguments.timing, call.kept_share());
      if (!gpu) row["threads"] = threads.size();
      results.table.add(cells(call, row, gpu));
      results.rows.push_back(std::move(row));
    }
  }
  return results;
}

}  // namespace tilewright::cli
