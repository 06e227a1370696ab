#include "generator/cuda_kernels.hpp"

#include <algorithm>
#include <array>
#include <numbers>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "generator/cuda_tactic.hpp"
#include "generator/hopper_tactic.hpp"
#include "generator/index_bounds.hpp"
#include "generator/index_differences.hpp"
#include "generator/kernel_context.hpp"
#include "generator/linear_reads.hpp"
#include "generator/proved_context.hpp"
#include "generator/read_types.hpp"
#include "generator/reading.hpp"
#include "generator/score_factors.hpp"
#include "generator/score_slope.hpp"
#include "generator/tactic_fields.hpp"
#include "generator/validate.hpp"

namespace tilewright {
namespace {

using jinja::List;
using jinja::Map;

using ForwardKind = KernelVariant;

// The mask's kernel must agree with the forward kernel that skips by it, so both read alike.
Reading cuda_reading(const Spec& spec) {
  Reading types = reading(spec.has_precise_functions() ? "float" : "fast");
  types.buffer_header = "cuda/snippet/buffer.hpp";
  return types;
}

// ptxas says in its log what a kernel uses; the log has no influence on the kernel.
std::vector<std::string> common_options() {
  return {"--std=c++20",       "-minimal", "-default-device",
          "--device-int128",   "-w",       "--diag-error=940",  // a path that returns nothing
          "--ptxas-options=-v"};
}

std::vector<std::string> compile_options(const Spec& spec) {
  std::vector<std::string> options = common_options();
  if (!spec.has_precise_functions()) {
    options.insert(options.end(), {"--prec-div=false", "--prec-sqrt=false"});
  }
  return options;
}

std::string_view tensor_type(DType dtype) {
  return dtype == DType::f32 ? "float" : dtype == DType::f16 ? "Half" : "BFloat16";
}

// Arguments have room for as many dimensions (templates/abi/cuda_snippet.hpp).
std::int64_t buffer_argument_rank(const Spec& spec) {
  constexpr std::size_t kUsualBufferRank = 4;
  const bool is_usual =
      std::all_of(spec.buffers.begin(), spec.buffers.end(),
                  [](const auto& named) { return named.second.shape.size() <= kUsualBufferRank; });
  return static_cast<std::int64_t>(is_usual ? kUsualBufferRank : kMaxBufferRank);
}

Map size_context(const Spec& spec) {
  return Map{{"block", List{spec.block[0], spec.block[1]}},
             {"buffer_count", static_cast<std::int64_t>(spec.buffers.size())},
             {"buffer_rank", buffer_argument_rank(spec)},
             {"scalar_count", static_cast<std::int64_t>(spec.scalars.size())}};
}

Map common_context(const Spec& spec, ReadAhead read_ahead) {
  Map context = snippet_context(spec, cuda_reading(spec), read_ahead);
  context["reads_are_numbers"] = reads_are_numbers(spec);
  context.merge(size_context(spec));
  return context;
}

Map forward_context(const Spec& spec, const ForwardKind& kind) {
  Map context = common_context(spec, ReadAhead::lanes_are_rows);
  context["index_differences"] = takes_index_difference(spec);
  context["bounds_indices"] = needs_bounded_indices(spec);
  context.merge(Map{{"head_dim", spec.head_dim},
                    {"value_dim", spec.value_head_dim()},
                    {"masked", kind.masked},
                    {"lse", kind.lse},
                    {"q_type", tensor_type(spec.dtype)},
                    {"kv_type", tensor_type(spec.key_value_dtype())},
                    {"out_type", tensor_type(spec.output_dtype())}});
  return context;
}

Map portable_context(const Spec& spec, const PortableTactic& tactic, const ForwardKind& kind) {
  Map context = forward_context(spec, kind);
  PortableTactic rendered = tactic;
  // Loads through registers take some of those that the scores would have.
  if (!kind.aligned && tactic.kv_tile % 32 == 0) rendered.kv_tile /= 2;
  context.merge(tactic_variables(rendered));
  context.merge(Map{{"row_tiles", row_tiles(spec, tactic)},
                    {"shared_bytes", shared_bytes(spec, tactic)},
                    {"aligned", kind.aligned},
                    {"tensor_cores", uses_tensor_cores(spec)}});
  return context;
}

List linear_read_values(const Spec& spec) {
  List values;
  for (const LinearRead& read : linear_reads(spec)) {
    values.push_back(Map{{"buffer", read.buffer}, {"indices", read.indices}});
  }
  return values;
}

// 50.0f
std::string float_literal(double value) {
  const std::string digits = fmt::format("{}", static_cast<float>(value));
  const bool is_whole = digits.find_first_of(".e") == std::string::npos;
  return digits + (is_whole ? ".0f" : "f");
}

// What the softmax may take from all scores in place of their maxima, in units of what score_mod
// gives: where that is bounded, exponents differ by no more than bf16 has room for (softmax.hpp).
// f16 has not.
std::optional<double> fixed_max(const Spec& spec, const ScoreFactors& factors) {
  constexpr double kLeastExponent = -100;  // far from bf16's least, -126
  constexpr double kMostExponent = 60;     // leaves 2^67 for sums of products with v
  const double greatest = factors.of_result * std::numbers::log2e;
  if (!factors.is_bounded || spec.dtype != DType::bf16) return {};
  if (2 * greatest > kMostExponent - kLeastExponent) return {};
  return std::min(1.0, -kLeastExponent / greatest - 1);
}

Map hopper_context(const Spec& given, const HopperTactic& tactic, const ForwardKind& kind) {
  const auto whole_steps = [](std::int64_t columns) { return (columns + 15) / 16 * 16; };
  const ScoreFactors factors = take_score_factors(given);
  Spec spec = given;
  spec.score_mod = factors.score_mod;
  const std::optional<double> max = fixed_max(spec, factors);
  const ScoreSlope slope = take_score_slope(spec);
  spec.score_mod = slope.score_mod;
  Map context = forward_context(spec, kind);
  // Two copies of score_mod and a mask's bits are more than three warpgroups have registers for.
  const bool has_room = !kind.masked || tactic.q_tile < 192;
  context["linear_reads"] = has_room ? linear_read_values(spec) : List{};
  context.merge(tactic_variables(tactic));
  context.merge(Map{{"head_pad", whole_steps(spec.head_dim)},
                    {"value_pad", whole_steps(spec.value_head_dim())},
                    {"merges_rows", kind.masked && merges_rows(spec, tactic)},
                    {"score_factor", float_literal(factors.of_score)},
                    {"result_factor", float_literal(factors.of_result)},
                    {"fixed_max", max ? jinja::Value(float_literal(*max)) : jinja::Value()},
                    {"slope_sign", slope.sign},
                    {"shared_bytes", shared_bytes(spec, tactic)}});
  return context;
}

KernelSource make_source(const Spec& spec, const Target& target, const KernelId& id,
                         jinja::Rendered rendered) {
  return {.id = id,
          .target = target,
          .text = std::move(rendered.text),
          .map = std::move(rendered.map),
          .template_files = std::move(rendered.files),
          .options = compile_options(spec),
          .entry_points = {},
          .launch = {},
          .extrema_tables = {},
          .fallback = {}};
}

KernelSource render_mask_kernel(const Spec& spec, const Target& target, const KernelId& id,
                                const jinja::Loader& loader) {
  const bool proves = id.role == KernelRole::mask_proved;
  Map context = common_context(spec, ReadAhead::no);
  context["proved"] = proves ? proved_context(spec, "cuda/mask/undecided.hpp") : jinja::Value();
  KernelSource source =
      make_source(spec, target, id, jinja::render(loader, "cuda/kernels/mask.cu.jinja", context));
  source.entry_points = {"tilewright_mask_rows"};
  if (!proves) return source;
  source.extrema_tables = extrema_tables(spec);
  source.fallback = KernelVariant{.role = KernelRole::mask_exact};
  return source;
}

// Without tables the source and its options are the same for every spec, so all share one entry of
// the cache.
KernelSource render_mask_lists(const Spec& spec, const Target& target, const KernelId& id,
                               const jinja::Loader& loader) {
  const List tables = tables_context(spec);
  Map context = {{"tables", tables}};
  if (!tables.empty()) context.merge(size_context(spec));
  KernelSource source =
      make_source(spec, target, id, jinja::render(loader, "cuda/kernels/mask_lists.cu.jinja", context));
  source.options = common_options();
  source.entry_points = {"tilewright_mask_scan"};
  if (!tables.empty()) source.entry_points.emplace_back("tilewright_mask_extrema");
  return source;
}

KernelSource render_portable(const Spec& spec, const Target& target, const KernelId& id,
                             const ForwardKind& kind, const PortableTactic& tactic,
                             const jinja::Loader& loader) {
  KernelSource source = make_source(
      spec, target, id,
      jinja::render(loader, "cuda/kernels/portable_forward.cu.jinja", portable_context(spec, tactic, kind)));
  source.entry_points = {"tilewright_forward"};
  source.launch = {.q_tile = tactic.q_tile,
                   .threads = 32 * tactic.warps,
                   .shared_bytes = shared_bytes(spec, tactic)};
  return source;
}

KernelSource render_hopper(const Spec& spec, const Target& target, const KernelId& id,
                           const ForwardKind& kind, const HopperTactic& tactic,
                           const jinja::Loader& loader) {
  constexpr std::int64_t kWarpgroup = 128;
  const std::int64_t q_tile = tactic.q_tile;
  KernelSource source = make_source(
      spec, target, id,
      jinja::render(loader, "cuda/kernels/hopper_forward.cu.jinja", hopper_context(spec, tactic, kind)));
  source.entry_points = {"tilewright_forward"};
  source.launch = {.q_tile = q_tile,
                   .threads = kWarpgroup + q_tile / 64 * kWarpgroup,
                   .shared_bytes = shared_bytes(spec, tactic),
                   .kv_box_rows = tactic.kv_tile,
                   .is_persistent = tactic.persistent};
  if (spec.score_mod.empty()) {  // the scale must fit into the exponent
    source.launch.least_factor = source.launch.greatest_factor = 1.0f;
  } else if (has_score_slope(spec)) {  // which is divided by it
    source.launch.least_factor = 0x1p-20f;
    source.launch.greatest_factor = 0x1p20f;
  }
  return source;
}

}  // namespace

KernelTraits forward_traits(const KernelId& id) {
  return id;
}

KernelSource render_cuda_kernel(const Spec& spec, const Target& target, const KernelId& id,
                                const jinja::Loader& loader) {
  if (id.role == KernelRole::mask_lists) return render_mask_lists(spec, target, id, loader);
  if (!id.is_forward()) return render_mask_kernel(spec, target, id, loader);
  const Tactic tactic = choose_tactic(spec, target, forward_traits(id));
  if (const HopperTactic* hopper = tactic.hopper()) {
    return render_hopper(spec, target, id, id, *hopper, loader);
  }
  return render_portable(spec, target, id, id, std::get<PortableTactic>(tactic.choice), loader);
}

}  // namespace tilewright
