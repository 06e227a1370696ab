#include "cli/bench/workloads.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "cli/bench/own_workload.hpp"
#include "cli/bench/packed_rows.hpp"
#include "cli/bench/variants.hpp"
#include "cli/machine.hpp"
#include "cli/random_lengths.hpp"

namespace tilewright::cli {
namespace {

// The sizes at which attention on GPUs is usually compared: 16k tokens, 2048 hidden.
constexpr std::int64_t kTokens = 16384;
constexpr std::int64_t kHidden = 2048;

Shape square(std::int64_t batch, std::int64_t heads, std::int64_t length) {
  return {.batch = batch,
          .num_q_heads = heads,
          .num_kv_heads = heads,
          .q_len = length,
          .kv_len = length};
}

std::vector<Workload> each_at(const BenchArguments& arguments, const std::vector<Spec>& specs,
                              const Shape& otherwise) {
  std::vector<Workload> workloads;
  for (const Spec& spec : specs) workloads.push_back({spec, shape_of(arguments, otherwise)});
  return workloads;
}

// head_dim 64, 128 and 256, full and causal, at lengths 2k, 8k and 16k.
std::vector<Workload> dense_on_gpu(const BenchArguments& arguments) {
  std::vector<std::int64_t> head_dims = {64, 128, 256};
  if (arguments.head_dim != 0) head_dims = {arguments.head_dim};
  std::vector<std::int64_t> lengths = {2048, 8192, 16384};
  if (arguments.q_len != 0) lengths = {arguments.q_len};
  const std::string target = gpu_facts(arguments.device).target;
  std::vector<Workload> workloads;
  for (const std::int64_t head_dim : head_dims) {
    for (const bool causal : {false, true}) {
      const DType dtype = dtype_of(arguments);
      const Spec spec = causal ? causal_variant(dtype, head_dim) : dense_variant(dtype, head_dim);
      for (const std::int64_t length : lengths) {
        Spec at_length = spec;
        if (causal) at_length.block = fastest_block(spec, target, length);
        const Shape shape = square(std::max<std::int64_t>(1, kTokens / length),
                                   std::max<std::int64_t>(1, kHidden / head_dim), length);
        workloads.push_back({at_length, shape_of(arguments, shape)});
      }
    }
  }
  return workloads;
}

std::vector<Workload> dense(const BenchArguments& arguments) {
  const Shape usual = square(1, 8, usual_length(arguments.device));
  if (arguments.spec) return each_at(arguments, {*arguments.spec}, usual);
  if (on_gpu(arguments)) return dense_on_gpu(arguments);
  std::vector<DType> dtypes = {DType::f32, DType::f16, DType::bf16};
  if (arguments.dtype) dtypes = {*arguments.dtype};
  std::vector<std::int64_t> head_dims = {64, 128};
  if (arguments.head_dim != 0) head_dims = {arguments.head_dim};
  std::vector<Spec> specs;
  for (const DType dtype : dtypes) {
    for (const std::int64_t head_dim : head_dims) specs.push_back(dense_variant(dtype, head_dim));
  }
  return each_at(arguments, specs, usual);
}

std::vector<Workload> mods(const BenchArguments& arguments) {
  const Shape usual = on_gpu(arguments) ? square(2, kHidden / 128, 8192)
                                        : square(1, 8, usual_length(arguments.device));
  return each_at(arguments, variants_of(arguments), usual);
}

// Lengths that double, up to --q-len, square.
std::vector<Workload> growth(const BenchArguments& arguments) {
  std::vector<Spec> specs;
  for (Spec& spec : mod_variants(dtype_of(arguments), head_dim_of(arguments))) {
    if (spec.name == "dense" || spec.name == "alibi_causal") specs.push_back(std::move(spec));
  }
  const Shape longest = shape_of(
      arguments, square(1, on_gpu(arguments) ? 16 : 8, 2 * usual_length(arguments.device)));
  std::vector<Workload> workloads;
  for (const Spec& spec : own_or(arguments, specs)) {
    Shape shape = longest;
    for (std::int64_t length = 128; length <= longest.q_len; length *= 2) {
      shape.q_len = shape.kv_len = length;
      workloads.push_back({spec, shape});
    }
    if (longest.q_len < 128) workloads.push_back({spec, longest});
  }
  return workloads;
}

}  // namespace

// With heads of more than 64 columns Hopper's kernel is fastest on 192 rows and 80 keys at a time,
// which blocks of 128 do not let it. A short triangle has more in it that such tiles compute in
// vain.
std::array<std::int64_t, 2> fastest_block(const Spec& spec, const std::string& target,
                                          std::int64_t length) {
  if (target != "sm_90a" || spec.head_dim <= 64 || spec.head_dim > 128) return spec.block;
  return length >= 4096 ? std::array<std::int64_t, 2>{192, 80} : spec.block;
}

bool on_gpu(const BenchArguments& arguments) {
  return arguments.device.kind() == Device::Kind::cuda;
}

DType dtype_of(const BenchArguments& arguments) {
  return arguments.dtype.value_or(on_gpu(arguments) ? DType::bf16 : DType::f32);
}

std::int64_t head_dim_of(const BenchArguments& arguments) {
  if (arguments.head_dim != 0) return arguments.head_dim;
  return on_gpu(arguments) ? 128 : 64;
}

std::int64_t usual_length(const Device& device) {
  if (device.kind() == Device::Kind::cuda) return 8192;
  const int threads = ThreadPool::default_size();
  return threads < 8 ? 1024 : threads < 32 ? 2048 : 4096;
}

Shape shape_of(const BenchArguments& arguments, const Shape& otherwise) {
  const auto given_or = [](std::int64_t given, std::int64_t other) {
    return given != 0 ? given : other;
  };
  Shape shape{.batch = given_or(arguments.batch, otherwise.batch),
              .num_q_heads = given_or(arguments.heads, otherwise.num_q_heads)};
  shape.num_kv_heads = given_or(arguments.kv_heads, shape.num_q_heads);
  shape.q_len = given_or(arguments.q_len, otherwise.q_len);
  shape.kv_len = given_or(arguments.kv_len, shape.q_len);
  validate(shape);
  return shape;
}

std::vector<Spec> own_or(const BenchArguments& arguments, std::vector<Spec> specs) {
  return arguments.spec ? std::vector<Spec>{*arguments.spec} : std::move(specs);
}

std::vector<Spec> variants_of(const BenchArguments& arguments) {
  const DType dtype = dtype_of(arguments);
  const std::int64_t head_dim = head_dim_of(arguments);
  return own_or(arguments, on_gpu(arguments) ? long_mod_variants(dtype, head_dim)
                                             : mod_variants(dtype, head_dim));
}

std::string description_of(const Workload& workload) {
  const Spec& spec = workload.spec;
  return fmt::format("{} {} d{} {}", spec.name, to_string(spec.dtype), spec.head_dim,
                     workload.lengths ? random_text(*workload.lengths) : workload.shape.describe());
}

Error no_such_row(const std::string& text, const std::vector<std::string>& rows) {
  return Error({.code = ErrorCode::usage,
                .message = fmt::format("no row of the suite holds \"{}\"", text),
                .notes = {fmt::format("the suite's rows:\n{}", fmt::join(rows, "\n"))},
                .hint = "--only takes any part of a row's text below"});
}

namespace {

std::vector<Workload> all_workloads(const std::string& suite, const BenchArguments& arguments) {
  if (suite == "backward") return backward_workloads(arguments);
  if (suite == "splits") return split_workloads(arguments);
  if (!arguments.inputs.empty()) return {own_workload(arguments)};
  if (suite == "dense") return dense(arguments);
  if (suite == "mods") return mods(arguments);
  if (suite == "growth") return growth(arguments);
  if (std::ranges::count(bench_suites(), suite) > 0) {
    throw Error(ErrorCode::usage, fmt::format("the suite \"{}\" has no list of calls", suite),
                "--list prints the calls of " + one_of(suites_of_calls()));
  }
  std::string hint = did_you_mean(suite, bench_suites());
  if (hint.empty()) hint = "there are " + one_of(bench_suites());
  throw Error(ErrorCode::usage, fmt::format("unknown suite \"{}\"", suite), hint);
}

}  // namespace

std::vector<Workload> workloads(const std::string& suite, const BenchArguments& arguments) {
  std::vector<Workload> rows;
  if (makes_packed_calls(suite)) {
    for (PackedRow& row : packed_rows(suite, arguments)) {
      rows.push_back(std::move(row.workload));
    }
    return rows;
  }
  rows = all_workloads(suite, arguments);
  keep_wanted(rows, arguments.only, description_of);
  return rows;
}

}  // namespace tilewright::cli
