#include "cli/bench_suites.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cache/store.hpp"
#include "cli/bench_measure.hpp"
#include "cli/bench_variants.hpp"
#include "cli/kernels.hpp"
#include "runtime/attention.hpp"
#include "runtime/temporary_directory.hpp"

namespace tilewright::cli {
namespace {

Json to_json(const Samples& samples) {
  return {{"ms", samples.median_ms}, {"ms_min", samples.least_ms}, {"samples", samples.count}};
}

std::vector<int> thread_counts(const BenchArguments& arguments) {
  return arguments.threads.empty() ? std::vector<int>{ThreadPool::default_size()}
                                   : arguments.threads;
}

// A length that a machine with so many threads works through in a fraction of a second.
std::int64_t usual_length() {
  const int threads = ThreadPool::default_size();
  return threads < 8 ? 1024 : threads < 32 ? 2048 : 4096;
}

Shape shape_of(const BenchArguments& arguments, std::int64_t default_length) {
  Shape shape{.batch = arguments.batch, .num_q_heads = arguments.heads};
  shape.num_kv_heads = arguments.kv_heads != 0 ? arguments.kv_heads : arguments.heads;
  shape.q_len = arguments.q_len != 0 ? arguments.q_len : default_length;
  shape.kv_len = arguments.kv_len != 0 ? arguments.kv_len : shape.q_len;
  validate(shape);
  return shape;
}

std::vector<Spec> own_or(const BenchArguments& arguments, std::vector<Spec> specs) {
  return arguments.spec ? std::vector<Spec>{*arguments.spec} : std::move(specs);
}

std::string gflops_of(double operations, double ms) {
  return fmt::format("{:.1f}", operations / ms / 1e6);
}

BenchResults forward_rows(const std::vector<Spec>& specs, const std::vector<Shape>& shapes,
                          const BenchArguments& arguments) {
  BenchResults results{Table(
      {"variant", "dtype", "dims", "shape", "threads", "time", "GFLOP/s", "density", "tactic"})};
  const std::vector<int> counts = thread_counts(arguments);
  Progress progress(specs.size() * shapes.size() * counts.size(), arguments.json);
  std::uint64_t seed = arguments.seed;
  for (const Spec& spec : specs) {
    for (const Shape& shape : shapes) {
      for (int count : counts) {
        progress.step(fmt::format("{}, {}", spec.name, shape.describe()));
        ThreadPool threads(count);
        const PreparedCall call(spec, shape, seed++, threads);
        const Samples samples = sample(arguments.budget_ms, [&] { call.forward(); });
        const double density = call.mask() ? call.mask()->density() : 1;
        const std::string dtype(to_string(spec.dtype));
        results.table.add({spec.name, dtype,
                           fmt::format("{}/{}", spec.head_dim, spec.value_head_dim()),
                           fmt::format("{}x{}/{}x{}x{}", shape.batch, shape.num_q_heads,
                                       shape.num_kv_heads, shape.q_len, shape.kv_len),
                           std::to_string(threads.size()), format_ms(samples.median_ms),
                           gflops_of(call.operations(), samples.median_ms),
                           fmt::format("{:.3f}", density), call.tactic()});
        Json row = {{"variant", spec.name},
                    {"dtype", dtype},
                    {"head_dim", spec.head_dim},
                    {"v_head_dim", spec.value_head_dim()},
                    {"batch", shape.batch},
                    {"num_q_heads", shape.num_q_heads},
                    {"num_kv_heads", shape.num_kv_heads},
                    {"q_len", shape.q_len},
                    {"kv_len", shape.kv_len},
                    {"threads", threads.size()},
                    {"gflops", call.operations() / samples.median_ms / 1e6},
                    {"density", density},
                    {"tactic", call.tactic()}};
        row.update(to_json(samples));
        results.rows.push_back(row);
      }
    }
  }
  return results;
}

BenchResults dense_suite(const BenchArguments& arguments) {
  std::vector<Spec> specs;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (std::int64_t head_dim : {64, 128}) specs.push_back(dense_variant(dtype, head_dim));
  }
  return forward_rows(own_or(arguments, specs), {shape_of(arguments, usual_length())}, arguments);
}

BenchResults mods_suite(const BenchArguments& arguments) {
  return forward_rows(own_or(arguments, mod_variants(arguments.dtype, arguments.head_dim)),
                      {shape_of(arguments, usual_length())}, arguments);
}

// Lengths that double, up to --q-len, square.
BenchResults growth_suite(const BenchArguments& arguments) {
  std::vector<Spec> specs;
  for (Spec& spec : mod_variants(arguments.dtype, arguments.head_dim)) {
    if (spec.name == "dense" || spec.name == "alibi_causal") specs.push_back(std::move(spec));
  }
  const Shape longest = shape_of(arguments, 2 * usual_length());
  std::vector<Shape> shapes;
  for (std::int64_t length = 128; length <= longest.q_len; length *= 2) {
    shapes.push_back(longest);
    shapes.back().q_len = shapes.back().kv_len = length;
  }
  if (shapes.empty()) shapes.push_back(longest);
  return forward_rows(own_or(arguments, specs), shapes, arguments);
}

BenchResults masks_suite(const BenchArguments& arguments) {
  BenchResults results{
      Table({"variant", "shape", "block", "threads", "time", "tiles/s", "density", "path"})};
  const std::vector<Spec> specs = own_or(arguments, mask_variants());
  const Shape shape = shape_of(arguments, 4096);
  const std::vector<int> counts = thread_counts(arguments);
  Progress progress(specs.size() * counts.size(), arguments.json);
  for (const Spec& spec : specs) {
    for (int count : counts) {
      progress.step(spec.name);
      ThreadPool threads(count);
      // The mask alone is measured; small heads keep q, k and v small.
      Spec small = spec;
      small.head_dim = small.v_head_dim = 16;
      const PreparedCall call(small, shape, arguments.seed, threads);
      if (!call.mask()) {
        throw Error(ErrorCode::usage, "the spec has no mask_mod, so it has no block mask to build",
                    "use --suite dense or mods");
      }
      const BlockMask& mask = *call.mask();
      const Samples samples = sample(arguments.budget_ms, [&] { call.build_mask(); });
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

// What a call costs where there is next to nothing to compute.
BenchResults launch_suite(const BenchArguments& arguments) {
  constexpr int kCalls = 1000;
  BenchResults results{Table({"variant", "threads", "host time per call"})};
  const Shape shape{.batch = 1, .num_q_heads = 1, .num_kv_heads = 1, .q_len = 16, .kv_len = 16};
  std::vector<Spec> specs;
  for (Spec& spec : mod_variants(DType::f32, 16)) {
    if (spec.name == "dense" || spec.name == "alibi_causal") specs.push_back(std::move(spec));
  }
  for (const Spec& spec : own_or(arguments, specs)) {
    for (int count : thread_counts(arguments)) {
      ThreadPool threads(count);
      const PreparedCall call(spec, shape, arguments.seed, threads);
      Samples samples = sample(arguments.budget_ms, [&] {
        for (int i = 0; i < kCalls; ++i) call.forward();
      });
      samples.median_ms /= kCalls;
      samples.least_ms /= kCalls;
      results.table.add({spec.name, std::to_string(threads.size()), format_ms(samples.median_ms)});
      Json row = {{"variant", spec.name}, {"threads", threads.size()}};
      row.update(to_json(samples));
      results.rows.push_back(row);
    }
  }
  return results;
}

constexpr double kShortBudgetMs = 50;

// One start: every kernel that a call needs, from the spec to where it can be called.
double prepare_ms(const Spec& spec, const std::shared_ptr<cache::Store>& store,
                  std::vector<KernelBuild>& builds) {
  KernelContext context;
  context.store = store;
  const Stopwatch watch;
  const Attention attention(spec, {.kernels = context});
  const double ms = watch.ms();
  builds = attention.builds();
  return ms;
}

BenchResults compile_suite(const BenchArguments& arguments) {
  BenchResults results{
      Table({"variant", "new snippet", "of it compiling", "from disk", "from memory", "size"})};
  const std::vector<Spec> specs =
      own_or(arguments, mod_variants(arguments.dtype, arguments.head_dim));
  Progress progress(specs.size(), arguments.json);
  for (const Spec& spec : specs) {
    progress.step(spec.name);
    // A cache of its own, so that the user's is neither asked nor filled.
    const TemporaryDirectory folder("bench");
    const auto new_store = [&] {
      return std::make_shared<cache::Store>(
          cache::Store::Options{.directory = folder.path(), .diagnostics = {}});
    };
    std::vector<KernelBuild> built, found;
    const double cold = prepare_ms(spec, new_store(), built);
    const auto store = new_store();
    const double disk =
        sample(kShortBudgetMs, [&] { prepare_ms(spec, new_store(), found); }).median_ms;
    const double memory = sample(kShortBudgetMs, [&] { prepare_ms(spec, store, found); }).median_ms;
    double compiling = 0;
    std::size_t bytes = 0;
    for (const KernelBuild& build : built) {
      compiling = std::max(compiling, build.compile_ms);
      bytes += build.bytes;
    }
    results.table.add({spec.name, format_ms(cold), format_ms(compiling), format_ms(disk),
                       format_ms(memory), format_bytes(bytes)});
    results.rows.push_back({{"variant", spec.name},
                            {"kernels", built.size()},
                            {"cold_ms", cold},
                            {"compile_ms", compiling},
                            {"disk_ms", disk},
                            {"memory_ms", memory},
                            {"bytes", bytes}});
  }
  return results;
}

}  // namespace

const std::vector<std::string>& bench_suites() {
  static const std::vector<std::string> kNames = {"dense", "mods",   "growth",
                                                  "masks", "launch", "compile"};
  return kNames;
}

BenchResults run_suite(const std::string& suite, const BenchArguments& arguments) {
  if (suite == "dense") return dense_suite(arguments);
  if (suite == "mods") return mods_suite(arguments);
  if (suite == "growth") return growth_suite(arguments);
  if (suite == "masks") return masks_suite(arguments);
  if (suite == "launch") return launch_suite(arguments);
  if (suite == "compile") return compile_suite(arguments);
  std::string hint = did_you_mean(suite, bench_suites());
  if (hint.empty()) hint = "there are " + one_of(bench_suites());
  throw Error(ErrorCode::usage, fmt::format("unknown suite \"{}\"", suite), hint);
}

}  // namespace tilewright::cli
