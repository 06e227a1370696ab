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

struct SplitRow {
  std::string sequences;  // "1x128:131072"
  Workload workload;
};

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

  std::vector<SplitRow> all() {
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
  void add_dense(const Spec& spec, const Shape& shape) {
    const Shape sizes = on_device(shape);
    all_.push_back({text(sizes), {spec, sizes}});
  }

  void add_packed(const Spec& spec, const Shape& shape) {
    const Shape sizes = on_device(shape);
    verify::PackedLengths lengths = {.num_q_heads = sizes.num_q_heads,
                                     .num_kv_heads = sizes.num_kv_heads};
    lengths.sequences.assign(static_cast<std::size_t>(sizes.batch), {sizes.q_len, sizes.kv_len});
    if (spec.is_paged()) lengths.pages.page_size = 16;
    all_.push_back({text(sizes), packed_workload(spec, lengths)});
  }

  // A CPU has the same rows in a 256th of the size.
  Shape on_device(Shape shape) const {
    if (on_gpu(arguments_)) return shape;
    shape.q_len = std::max<std::int64_t>(shape.q_len / 16, 1);
    shape.kv_len /= 16;
    return shape;
  }

  static std::string text(const Shape& shape) {
    return fmt::format("{}x{}:{}", shape.batch, shape.q_len, shape.kv_len);
  }

  const BenchArguments& arguments_;
  DType dtype_;
  std::int64_t head_dim_;
  std::vector<SplitRow> all_;
};

void refuse_sizes_of_splits(const BenchArguments& arguments) {
  for (const auto& [name, size] :
       {std::pair{"--batch", arguments.batch}, std::pair{"--heads", arguments.heads},
        std::pair{"--kv-heads", arguments.kv_heads}, std::pair{"--q-len", arguments.q_len},
        std::pair{"--kv-len", arguments.kv_len}}) {
    if (size == 0) continue;
    throw Error(ErrorCode::usage, fmt::format("--suite splits takes no {}", name),
                "its calls have few q tiles over many columns; --head-dim and --dtype vary them");
  }
}

PreparedCall prepare_row(const SplitRow& row, const BenchArguments& arguments, ThreadPool& threads,
                         bool splits) {
  return PreparedCall(row.workload, {.device = arguments.device,
                                     .seed = arguments.seed,
                                     .threads = &threads,
                                     .batch_invariant = !splits,
                                     .decode = splits});
}

}  // namespace

BenchResults splits_suite(const BenchArguments& arguments) {
  refuse_sizes_of_splits(arguments);
  const bool gpu = on_gpu(arguments);
  BenchResults results{Table({"variant", "layout", "dims", "heads", "sequences", "kernel", "time",
                              gpu ? "TFLOP/s" : "GFLOP/s", "unsplit", "times as fast"})};
  const std::vector<SplitRow> rows = SplitRows(arguments).all();
  Progress progress(rows.size(), arguments.json);
  ThreadPool threads(thread_counts(arguments).front());
  for (const SplitRow& row : rows) {
    const Spec& spec = row.workload.spec;
    const Shape& shape = row.workload.shape;
    progress.step(fmt::format("{}, {}", spec.name, row.sequences));
    const PreparedCall split = prepare_row(row, arguments, threads, true);
    const PreparedCall whole = prepare_row(row, arguments, threads, false);
    const auto [samples, of_whole] = time_in_turns(split, whole, arguments.timing);
    Json facts = forward_row(split, arguments.timing, split.kept_share(), samples);
    const double gain = of_whole.median_ms / samples.median_ms;
    const std::string kernel = split.kernel();
    results.table.add({spec.name, spec.is_paged() ? "paged" : std::string(to_string(spec.layout)),
                       fmt::format("{}/{}", spec.head_dim, spec.value_head_dim()),
                       fmt::format("{}/{}", shape.num_q_heads, shape.num_kv_heads), row.sequences,
                       kernel, format_ms(samples.median_ms),
                       fmt::format("{:.1f}", facts["gflops"].get<double>() / (gpu ? 1000 : 1)),
                       format_ms(of_whole.median_ms), fmt::format("{:.2f}", gain)});
    facts["sequences"] = row.sequences;
    facts["kernel"] = kernel;
    facts["unsplit_ms"] = of_whole.median_ms;
    facts["ratio"] = gain;
    results.rows.push_back(std::move(facts));
  }
  return results;
}

}  // namespace tilewright::cli
