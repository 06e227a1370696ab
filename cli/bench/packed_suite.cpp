// Packed calls: what serving engines make.
#include <fmt/format.h>

#include "cli/bench/packed_rows.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/progress.hpp"

namespace tilewright::cli {
namespace {

PreparedCall prepare_call(const Workload& workload, const BenchArguments& arguments,
                          std::uint64_t seed, ThreadPool& threads, bool batch_invariant) {
  return PreparedCall(workload, {.device = arguments.device,
                                 .seed = seed,
                                 .buffers = arguments.buffers,
                                 .threads = &threads,
                                 .batch_invariant = batch_invariant,
                                 .splits = arguments.splits});
}

// Two rows of the same batch, in turns: "ratio", and what it is a ratio to.
Json compared_row(const PreparedCall& call, const PackedRow::Reference& reference,
                  const BenchArguments& arguments, std::uint64_t seed, ThreadPool& threads) {
  const PreparedCall other = prepare_call(reference.workload, arguments, seed, threads,
                                          arguments.batch_invariant || reference.batch_invariant);
  const auto [samples, other_samples] = time_in_turns(call, other, arguments.timing);
  Json row = forward_row(call, arguments.timing, call.kept_share(), samples);
  const Json against = forward_row(other, arguments.timing, other.kept_share(), other_samples);
  const char* const rate = reference.of_tiles ? "gflops_tiles" : "gflops";
  row["ratio"] = row[rate].get<double>() / against[rate].get<double>();
  row["ratio_of"] = rate;
  row["reference"] = reference.name;
  row["reference_ms"] = other_samples.median_ms;
  return row;
}

Json bars_of(const PackedRow& row) {
  Json bars = Json::object();
  if (row.least_ratio > 0) bars["ratio"] = row.least_ratio;
  if (row.most_plan_ms > 0) bars["plan_ms"] = row.most_plan_ms;
  if (row.most_plan_share > 0) bars["plan_share"] = row.most_plan_share;
  return bars;
}

std::string bar_text(const PackedRow& row) {
  if (row.least_ratio > 0) return fmt::format("ratio >= {}", row.least_ratio);
  if (row.most_plan_ms > 0) return "plan <= " + format_ms(row.most_plan_ms);
  if (row.most_plan_share > 0) return fmt::format("plan <= {} %", 100 * row.most_plan_share);
  return "-";
}

std::vector<std::string> serving_header(bool gpu) {
  std::vector<std::string> names = {"variant", "dtype", "dims", "heads", "sequences"};
  if (!gpu) names.push_back("threads");
  names.insert(names.end(), {"time", gpu ? "TFLOP/s" : "GFLOP/s", "GB/s", "kept", "tiles visited",
                             "plan", "of forward", "ratio", "to", "bar"});
  return names;
}

std::vector<std::string> serving_cells(const PackedRow& serving, const Json& row, bool gpu) {
  const Spec& spec = serving.workload.spec;
  const Shape& shape = serving.workload.shape;
  const bool is_compared = serving.reference.has_value();
  const char* const rate = is_compared && serving.reference->of_tiles ? "gflops_tiles" : "gflops";
  const auto number = [&](const char* key) { return row[key].get<double>(); };
  std::vector<std::string> cells = {spec.name, std::string(to_string(spec.dtype)),
                                    fmt::format("{}/{}", spec.head_dim, spec.value_head_dim()),
                                    fmt::format("{}/{}", shape.num_q_heads, shape.num_kv_heads),
                                    serving.name};
  if (!gpu) cells.push_back(std::to_string(row["threads"].get<int>()));
  cells.insert(cells.end(),
               {format_ms(number("ms")), fmt::format("{:.1f}", number(rate) / (gpu ? 1000 : 1)),
                fmt::format("{:.0f}", number("kv_gbytes_per_s")),
                fmt::format("{:.3f}", number("kept")), fmt::format("{:.3f}", number("density")),
                format_ms(number("plan_ms")), fmt::format("{:.2f} %", 100 * number("plan_share")),
                is_compared ? fmt::format("{:.3f}", number("ratio")) : "-",
                is_compared ? serving.reference->name : "-", bar_text(serving)});
  return cells;
}

}  // namespace

BenchResults packed_suite(const std::vector<PackedRow>& rows, const BenchArguments& arguments) {
  const bool gpu = on_gpu(arguments);
  BenchResults results{Table(serving_header(gpu))};
  const std::vector<int> counts = thread_counts(arguments);
  Progress progress(rows.size() * counts.size(), arguments.json);
  std::uint64_t seed = arguments.seed;
  for (const PackedRow& serving : rows) {
    for (const int count : counts) {
      progress.step(fmt::format("{}, {}", serving.workload.spec.name, serving.name));
      ThreadPool threads(count);
      const PreparedCall call =
          prepare_call(serving.workload, arguments, seed++, threads, arguments.batch_invariant);
      Json row = serving.reference
                     ? compared_row(call, *serving.reference, arguments, seed, threads)
                     : forward_row(call, arguments.timing, call.kept_share());
      row["sequences"] = serving.name;
      row["kernel"] = call.kernel();
      row["bars"] = bars_of(serving);
      if (!gpu) row["threads"] = threads.size();
      results.table.add(serving_cells(serving, row, gpu));
      results.rows.push_back(std::move(row));
    }
  }
  return results;
}

}  // namespace tilewright::cli
