#include "cli/bench/suites.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/bench/own_workload.hpp"
#include "cli/bench/packed_rows.hpp"
#include "cli/bench/variants.hpp"
#include "cli/bench/workloads.hpp"
#include "cli/progress.hpp"

namespace tilewright::cli {

std::vector<int> thread_counts(const BenchArguments& arguments) {
  if (on_gpu(arguments)) return {1};
  return arguments.threads.empty() ? std::vector<int>{ThreadPool::default_size()}
                                   : arguments.threads;
}

BenchResults masks_suite(const BenchArguments& arguments) {
  BenchResults results{
      Table({"variant", "shape", "block", "threads", "time", "tiles/s", "density", "path"})};
  const std::vector<Spec> specs = own_or(arguments, mask_variants());
  const Shape shape =
      shape_of(arguments, {.num_q_heads = 8, .num_kv_heads = 8, .q_len = 4096, .kv_len = 4096});
  const std::vector<int> counts = thread_counts(arguments);
  Progress progress(specs.size() * counts.size(), arguments.json);
  for (const Spec& spec : specs) {
    for (int count : counts) {
      progress.step(spec.name);
      ThreadPool threads(count);
      // The mask alone is measured; small heads keep q, k and v small.
      Spec small = spec;
      small.head_dim = small.v_head_dim = 16;
      const PreparedCall call({small, shape}, {.device = arguments.device,
                                               .seed = arguments.seed,
                                               .buffers = arguments.buffers,
                                               .threads = &threads});
      if (!call.mask()) {
        throw Error(ErrorCode::usage, "the spec has no mask_mod, so it has no block mask to build",
                    "use --suite dense or mods");
      }
      const BlockMask& mask = *call.mask();
      const Samples samples = sample(arguments.timing.budget_ms, [&] { call.build_mask(); });
      const double tiles = static_cast<double>(mask.rows() * mask.kv_blocks());
      results.table.add(
          {spec.name,
           fmt::format("{}x{}x{}x{}", mask.batch(), mask.heads(), shape.q_len, shape.kv_len),
           fmt::format("{}x{}", spec.block[0], spec.block[1]), std::to_string(threads.size()),
           format_ms(samples.median_ms), fmt::format("{:.0f}", tiles / samples.median_ms * 1e3),
           fmt::format("{:.3f}", mask.density()), std::string(mask.path())});
      Json row = {{"variant", spec.name},      {"batch", mask.batch()},
                  {"heads", mask.heads()},     {"q_len", shape.q_len},
                  {"kv_len", shape.kv_len},    {"block", spec.block},
                  {"threads", threads.size()}, {"tiles", tiles},
                  {"density", mask.density()}, {"path", mask.path()}};
      row.update(to_json(samples));
      results.rows.push_back(row);
    }
  }
  return results;
}

const std::vector<std::string>& bench_suites() {
  static const std::vector<std::string> kNames = {
      "dense",   "mods",  "growth",           "masks",    "serving", "paged", "launch",
      "compile", "start", "context_parallel", "backward", "splits"};
  return kNames;
}

const std::vector<std::string>& suites_of_calls() {
  static const std::vector<std::string> kNames = {"dense", "mods",     "growth", "serving",
                                                  "paged", "backward", "splits"};
  return kNames;
}

BenchResults run_suite(const std::string& suite, const BenchArguments& arguments) {
  if (suite == "masks") return masks_suite(arguments);
  if (suite == "launch") return launch_suite(arguments);
  if (suite == "compile") return compile_suite(arguments);
  if (suite == "context_parallel") return context_parallel_suite(arguments);
  if (suite == "backward") return backward_suite(arguments);
  if (suite == "splits") return splits_suite(arguments);
  if (suite == "start") return start_suite(arguments);
  if (makes_packed_calls(suite) || (arguments.spec && arguments.spec->is_packed())) {
    return packed_suite(packed_rows(suite, arguments), arguments);
  }
  return forward_suite(workloads(suite, arguments), arguments);
}

}  // namespace tilewright::cli
