// Calls with few q tiles over many columns, each in turns with the same call unsplit.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/bench/packed_workload.hpp"
#include "cli/bench/suites.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/kernels.hpp"
#include "cli/progress.hpp"

namespace tilewright::cli {
namespace {

// Rows end where columns end, as a chunk of a prompt.
Spec chunk_variant(DType dtype, std::int64_t head_dim) {
  Spec spec = causal_variant(dtype, head_dim);
  spec.name = "chunk";
  spec.mask_mod = "q_idx + kv_len - q_len >= kv_idx";
  return spec;
}

class SplitRows {
 public:
  explicit SplitRows(const BenchArguments& arguments)
      : arguments_(arguments), dtype_(dtype_of(arguments)), head_dim_(head_dim_of(arguments)) {}

  std::vector<Workload> all() {
    const Spec causal = causal_variant(dtype_, head_dim_);
    add_dense(dense_variant(dtype_, head_dim_), {1, 8, 8, 128, 131072});
    add_dense(dense_variant(dtype_, head_dim_), {1, 8, 8, 512, 32768});
    add_dense(chunk_variant(dtype_, head_dim_), {1, 8, 1, 512, 131072});
    add_dense(chunk_variant(dtype_, head_dim_), {1, 32, 8, 256, 32768});
    add_dense(causal, {1, 8, 8, 16384, 16384});  // q tiles enough
    add_packed(as_paged(causal), {1, 32, 8, 256, 32768});
    add_packed(as_paged(causal), {1, 8, 1, 512, 131072});
    add_packed(as_packed(causal), {2, 8, 8, 512, 32768});
    add_packed(as_paged(long_variant("softcap_causal", dtype_, head_dim_)), {1, 8, 1, 512, 131072});
    return std::move(all_);
  }

 private:
  void add_dense(const Spec& spec, const Shape& shape) { all_.push_back({spec, on_device(shape)}); }

  void add_packed(const Spec& spec, const Shape& shape) {
    const Shape sizes = on_device(shape);
    verify::PackedLengths lengths = {.num_q_heads = sizes.num_q_heads,
                                     .num_kv_heads = sizes.num_kv_heads};
    lengths.sequences.assign(static_cast<std::size_t>(sizes.batch), {sizes.q_len, sizes.kv_len});
    if (spec.is_paged()) lengths.pages.page_size = 16;
    all_.push_back(packed_workload(spec, lengths));
  }

  // A CPU has the same rows in a 256th of the size.
  Shape on_device(Shape shape) const {
    if (on_gpu(arguments_)) return shape;
    shape.q_len = std::max<std::int64_t>(shape.q_len / 16, 1);
    shape.kv_len /= 16;
    return shape;
  }

  const BenchArguments& arguments_;
  DType dtype_;
  std::int64_t head_dim_;
  std::vector<Workload> all_;
};

// "1x128:131072"
std::string sequences_of(const Workload& workload) {
  if (!workload.lengths) {
    const Shape& shape = workload.shape;
    return fmt::format("{}x{}:{}", shape.batch, shape.q_len, shape.kv_len);
  }
  const auto& sequences = workload.lengths->sequences;  // all alike
  return fmt::format("{}x{}:{}", sequences.size(), sequences.front().q_len,
                     sequences.front().kv_len);
}

void refuse_many_threads(const BenchArguments& arguments) {
  if (arguments.threads.size() <= 1) return;
  throw Error(ErrorCode::usage, "--suite splits takes one number of --threads",
              "run it once for each number");
}

PreparedCall prepare_row(const Workload& row, const BenchArguments& arguments, ThreadPool& threads,
                         bool splits) {
  return PreparedCall(row, {.device = arguments.device,
                            .seed = arguments.seed,
                            .threads = &threads,
                            .batch_invariant = !splits,
                            .splits = splits ? arguments.splits : 0,
                            .decode = splits});
}

// A CPU splits no call, so it has nothing to compare.
std::vector<std::string> splits_header(bool gpu) {
  std::vector<std::string> names = {"variant",   "layout", "dims", "heads",
                                    "sequences", "kernel", "time", gpu ? "TFLOP/s" : "GFLOP/s"};
  if (gpu) names.insert(names.end(), {"unsplit", "times as fast"});
  return names;
}

std::vector<std::string> cells(const Workload& row, const Json& facts, bool gpu) {
  const Spec& spec = row.spec;
  const double rate = facts["gflops"].get<double>() / (gpu ? 1000 : 1);
  std::vector<std::string> cells = {
      spec.name,
      spec.is_paged() ? "paged" : std::string(to_string(spec.layout)),
      fmt::format("{}/{}", spec.head_dim, spec.value_head_dim()),
      fmt::format("{}/{}", row.shape.num_q_heads, row.shape.num_kv_heads),
      sequences_of(row),
      facts["kernel"].get<std::string>(),
      format_ms(facts["ms"].get<double>()),
      fmt::format("{:.1f}", rate)};
  if (gpu) {
    cells.insert(cells.end(), {format_ms(facts["unsplit_ms"].get<double>()),
                               fmt::format("{:.2f}", facts["ratio"].get<double>())});
  }
  return cells;
}

Json measured_row(const Workload& row, const BenchArguments& arguments, ThreadPool& threads) {
  const PreparedCall split = prepare_row(row, arguments, threads, true);
  Json facts;
  if (on_gpu(arguments)) {
    const PreparedCall whole = prepare_row(row, arguments, threads, false);
    const auto [samples, of_whole] = time_in_turns(split, whole, arguments.timing);
    facts = forward_row(split, arguments.timing, split.kept_share(), samples);
    facts["unsplit_ms"] = of_whole.median_ms;
    facts["ratio"] = of_whole.median_ms / samples.median_ms;
  } else {
    facts = forward_row(split, arguments.timing, split.kept_share());
  }
  facts["sequences"] = sequences_of(row);
  facts["kernel"] = split.kernel();
  return facts;
}

}  // namespace

std::vector<Workload> split_workloads(const BenchArguments& arguments) {
  return SplitRows(arguments).all();
}

BenchResults splits_suite(const BenchArguments& arguments) {
  refuse_many_threads(arguments);
  const bool gpu = on_gpu(arguments);
  BenchResults results{Table(splits_header(gpu))};
  const std::vector<Workload> rows = workloads("splits", arguments);
  Progress progress(rows.size(), arguments.json);
  ThreadPool threads(thread_counts(arguments).front());
  for (const Workload& row : rows) {
    progress.step(fmt::format("{}, {}", row.spec.name, sequences_of(row)));
    Json facts = measured_row(row, arguments, threads);
    results.table.add(cells(row, facts, gpu));
    results.rows.push_back(std::move(facts));
  }
  return results;
}

}  // namespace tilewright::cli
