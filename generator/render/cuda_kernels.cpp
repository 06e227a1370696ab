#include "generator/render/cuda_kernels.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "generator/render/derivative_context.hpp"
#include "generator/render/proved_context.hpp"
#include "generator/render/template_variables.hpp"
#include "generator/snippet/interpretation.hpp"
#include "generator/spec/gradients.hpp"
#include "generator/spec/validate.hpp"
#include "generator/tactic/backward_tactic.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/decode_tactic.hpp"
#include "generator/tactic/hopper_backward_tactic.hpp"
#include "generator/tactic/hopper_tactic.hpp"
#include "generator/tactic/tactic_fields.hpp"

namespace tilewright {
namespace {

using jinja::List;
using jinja::Map;

// The mask's kernel must agree with the forward kernel that skips by it, so both read alike.
Interpretation cuda_interpretation(const Spec& spec) {
  Interpretation types = interpretation(spec.has_precise_functions() ? "float" : "fast");
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

// Arguments have room for as many dimensions (templates/abi/cuda_snippet.hpp).
std::int64_t buffer_argument_rank(const Spec& spec) {
  constexpr std::size_t kUsualBufferRank = 4;
  const bool is_usual =
      std::all_of(spec.buffers.begin(), spec.buffers.end(),
                  [](const auto& named) { return named.second.shape.size() <= kUsualBufferRank; });
  return static_cast<std::int64_t>(is_usual ? kUsualBufferRank : kMaxBufferRank);
}

Map size_context(const SpecFacts& facts, const Target& target) {
  const Spec& spec = facts.spec;
  return Map{{"block", List{plan_row_side(facts, target), spec.block[1]}},
             {"work_side", plan_work_side(facts, target)},
             {"buffer_count", static_cast<std::int64_t>(spec.buffers.size())},
             {"buffer_rank", buffer_argument_rank(spec)},
             {"scalar_count", static_cast<std::int64_t>(spec.scalar_entries())}};
}

// Of either of a kernel's snippets.
bool any(const SpecFacts& facts, ScoreForm form, bool snippet::SnippetFacts::*fact) {
  return facts.score_facts(form).*fact || (facts.mask_mod && facts.mask_mod->facts.*fact);
}

// Values that were read ahead are plain already.
bool needs_plain_reads(const snippet::SnippetFacts& facts, ReadAhead read_ahead) {
  const auto is_read_there = [&](const snippet::BufferRead& read) {
    return read_ahead == ReadAhead::no || !read.is_hoistable;
  };
  return facts.needs_plain_reads &&
         (facts.is_opaque || std::any_of(facts.reads.begin(), facts.reads.end(), is_read_there));
}

Map common_context(const SpecFacts& facts, const Target& target, ReadAhead read_ahead,
                   ScoreForm form) {
  Map context = snippet_context(facts, cuda_interpretation(facts.spec), read_ahead, form);
  context["reads_are_numbers"] =
      needs_plain_reads(facts.score_facts(form), read_ahead) ||
      (facts.mask_mod && needs_plain_reads(facts.mask_mod->facts, read_ahead)) ||
      std::any_of(snippet_kinds().begin(), snippet_kinds().end(), [&](SnippetKind kind) {
        const bool is_of_scores = kind == SnippetKind::score_mod || kind == SnippetKind::mask_mod;
        return !is_of_scores && facts.of(kind) && facts.of(kind)->facts.needs_plain_reads;
      });
  context.merge(size_context(facts, target));
  context["split"] = false;
  context["resident"] = false;
  return context;
}

// Whether a kernel goes by a block mask or a plan's tile map.
bool follows_tiles(const Spec& spec, const KernelVariant& variant) {
  return variant.masked || (spec.is_packed() && !spec.mask_mod.empty());
}

// Rows of a decode kernel's tile are of several heads, so nothing that a head reads is the tile's.
ReadAhead read_ahead_of(const KernelVariant& variant) {
  return variant.rows == KernelRows::decode ? ReadAhead::no : ReadAhead::lanes_are_rows;
}

Map forward_context(const SpecFacts& facts, const Target& target, const KernelVariant& variant,
                    ScoreForm form) {
  const Spec& spec = facts.spec;
  Map context = common_context(facts, target, read_ahead_of(variant), form);
  context["index_differences"] = facts.score_facts(form).takes_index_difference;
  context["bounds_indices"] = any(facts, form, &snippet::SnippetFacts::needs_bounded_indices);
  context.merge(Map{{"head_dim", spec.tile_head_dim()},
                    {"value_dim", spec.tile_value_dim()},
                    {"masked", follows_tiles(spec, variant)},
                    {"lse", variant.lse}});
  context.merge(dtype_context(spec));
  return context;
}

Map portable_context(const SpecFacts& facts, const Target& target, const PortableTactic& tactic,
                     const KernelVariant& variant) {
  const Spec& spec = facts.spec;
  Map context = forward_context(facts, target, variant, ScoreForm::simplified);
  PortableTactic rendered = tactic;
  // Loads through registers take some of those that the scores would have.
  if (!variant.aligned && tactic.kv_tile % 32 == 0) rendered.kv_tile /= 2;
  context.merge(tactic_variables(rendered));
  context.merge(Map{{"row_tiles", row_tiles(spec, tactic)},
                    {"shared_bytes", shared_bytes(spec, tactic)},
                    {"aligned", variant.aligned && !spec.pads_rows()},
                    {"tensor_cores", uses_tensor_cores(spec)},
                    {"tf32", uses_tf32(spec)}});
  return context;
}

Map decode_context(const SpecFacts& facts, const Target& target, const DecodeTactic& tactic,
                   const KernelVariant& variant) {
  const Spec& spec = facts.spec;
  Map context = forward_context(facts, target, variant, ScoreForm::simplified);
  context.merge(tactic_variables(tactic));
  context.merge(Map{{"rows", kDecodeRows},
                    {"shared_bytes", shared_bytes(spec, tactic)},
                    {"aligned", variant.aligned},
                    {"tensor_cores", true}});
  return context;
}

List read_values(const std::vector<snippet::BufferRead>& reads) {
  List values;
  for (const snippet::BufferRead& read : reads) {
    values.push_back(Map{{"buffer", read.buffer}, {"indices", indices_text(read)}});
  }
  return values;
}

// 50.0f
std::string float_literal(double value) {
  const std::string digits = fmt::format("{}", static_cast<float>(value));
  const bool is_whole = digits.find_first_of(".e") == std::string::npos;
  return digits + (is_whole ? ".0f" : "f");
}

Map hopper_context(const SpecFacts& facts, const Target& target, const HopperTactic& tactic,
                   const KernelVariant& variant) {
  const Spec& spec = facts.spec;
  const DType kv = spec.key_value_dtype();
  constexpr std::int64_t kColumnStep = 16;                        // of a product's results
  const std::int64_t k_step = multiplies_float8(spec) ? 32 : 16;  // of what it sums over
  const snippet::ScoreReduction& reduction = facts.reduction;
  const std::optional<double> max = facts.fixed_max();
  const std::optional<std::int64_t> of_differences =
      difference_bytes(facts, target, variant, tactic);
  const ScoreForm form = of_differences ? ScoreForm::without_difference : ScoreForm::reduced;
  Map context = forward_context(facts, target, variant, form);
  // Two copies of score_mod and a mask's bits are more than three warpgroups have registers for.
  const bool has_room = !follows_tiles(spec, variant) || tactic.q_tile < 192;
  context["linear_reads"] = has_room ? read_values(linear_reads(facts.score_facts(form))) : List{};
  context["split"] = variant.split;
  context["resident"] = variant.resident;
  context["proved"] = variant.resident && facts.has_plain_mask()
                          ? proved_context(facts, "cuda/hopper/resident/undecided.hpp", {})
                          : jinja::Value();
  context.merge(tactic_variables(tactic));
  context.merge(
      Map{{"head_pad", round_up(spec.head_dim, k_step)},
          {"value_pad", round_up(spec.value_head_dim(), kColumnStep)},
          {"prepared", prepared_tiles(spec)},
          {"brought_stages", brought_stages(spec, tactic)},
          {"preparing_groups", preparing_groups(spec, tactic)},
          {"prepares_in_turns", prepares_in_turns(spec, tactic)},
          {"preparers", preparers(spec, tactic)},
          {"k_box_panels", spec.is_paged() ? page_box_panels(spec.head_dim, kv) : 1},
          {"v_box_panels", spec.is_paged() ? page_box_panels(spec.value_head_dim(), kv) : 1},
          {"spans_two_blocks",
           !variant.resident && follows_tiles(spec, variant) && spans_two_blocks(spec, tactic)},
          {"score_factor", float_literal(reduction.of_score.literal)},
          {"result_factor", float_literal(reduction.of_result.literal)},
          {"scales_results_up",
           reduction.of_result.literal > 1 || !reduction.of_result.scalars.empty()},
          {"fixed_max", max ? jinja::Value(float_literal(*max)) : jinja::Value()},
          {"slope_sign", reduction.slope_sign},
          {"difference_bytes", of_differences.value_or(0)},
          {"shared_bytes", shared_bytes(spec, tactic) + of_differences.value_or(0)}});
  return context;
}

KernelSource make_source(const Spec& spec, const Target& target, const KernelVariant& variant,
                         jinja::Rendered rendered) {
  return {.variant = variant,
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

KernelSource render_mask_kernel(const SpecFacts& facts, const Target& target,
                                const KernelVariant& variant, const jinja::Loader& loader) {
  const bool proves = variant.role == KernelRole::mask_proved;
  Map context = common_context(facts, target, ReadAhead::no, ScoreForm::as_written);
  context["proved"] = proves
                          ? proved_context(facts, "cuda/mask/undecided.hpp", extrema_tables(facts))
                          : jinja::Value();
  KernelSource source = make_source(facts.spec, target, variant,
                                    jinja::render(loader, "cuda/kernels/mask.cu.jinja", context));
  source.entry_points = {"tilewright_mask_rows"};
  if (!proves) return source;
  source.extrema_tables = extrema_tables(facts);
  source.fallback = KernelVariant{.role = KernelRole::mask_exact};
  return source;
}

// Its proofs read no tables, which would have to be filled before each step: a read over a range of
// more than a few elements decides nothing unless the buffer is promised to be sorted, and those
// tiles are evaluated.
KernelSource render_plan_kernel(const SpecFacts& facts, const Target& target,
                                const KernelVariant& variant, const jinja::Loader& loader) {
  const bool proves = variant.role == KernelRole::plan_proved;
  Map context = common_context(facts, target, ReadAhead::no, ScoreForm::as_written);
  context["decodes"] = has_decode_kernel(facts.spec);
  context["decode_columns"] = has_decode_kernel(facts.spec)
                                  ? decode_columns(decode_tactic(facts.spec, target))
                                  : facts.spec.block[1];
  context["proved"] =
      proves ? proved_context(facts, "cuda/mask/undecided.hpp", {}) : jinja::Value();
  context["promised"] = proves ? promised_context(facts) : List();
  KernelSource source = make_source(facts.spec, target, variant,
                                    jinja::render(loader, "cuda/kernels/plan.cu.jinja", context));
  source.entry_points = {"tilewright_plan"};
  if (proves) source.fallback = KernelVariant{.role = KernelRole::plan_exact};
  return source;
}

// Without tables the source and its options are the same for every spec, so all share one entry of
// the cache.
KernelSource render_mask_lists(const SpecFacts& facts, const Target& target,
                               const KernelVariant& variant, const jinja::Loader& loader) {
  const Spec& spec = facts.spec;
  const List tables = tables_context(facts);
  Map context = {{"tables", tables}};
  if (!tables.empty()) context.merge(size_context(facts, target));
  KernelSource source = make_source(
      spec, target, variant, jinja::render(loader, "cuda/kernels/mask_lists.cu.jinja", context));
  source.options = common_options();
  source.entry_points = {"tilewright_mask_scan"};
  if (!tables.empty()) source.entry_points.emplace_back("tilewright_mask_extrema");
  return source;
}

// A kernel without snippets. Specs with the same dtypes share it.
KernelSource render_plain(const Spec& spec, const Target& target, const KernelVariant& variant,
                          const jinja::Loader& loader) {
  const std::string name = variant.name();
  KernelSource source = make_source(
      spec, target, variant,
      jinja::render(loader, fmt::format("cuda/kernels/{}.cu.jinja", name), dtype_context(spec)));
  source.options = common_options();
  source.entry_points = {"tilewright_" + name};
  return source;
}

// append of a spec with scales, and quantise: they divide by them.
KernelSource render_dividing(const SpecFacts& facts, const Target& target,
                             const KernelVariant& variant, const jinja::Loader& loader) {
  const Spec& spec = facts.spec;
  Map context = common_context(facts, target, ReadAhead::no, ScoreForm::as_written);
  context.merge(dtype_context(spec));
  context["scales_rows"] = true;
  const std::string name = variant.name();
  KernelSource source =
      make_source(spec, target, variant,
                  jinja::render(loader, fmt::format("cuda/kernels/{}.cu.jinja", name), context));
  source.entry_points = {"tilewright_" + name};
  return source;
}

KernelSource render_portable(const SpecFacts& facts, const Target& target,
                             const KernelVariant& variant, const PortableTactic& tactic,
                             const jinja::Loader& loader) {
  const Spec& spec = facts.spec;
  KernelSource source =
      make_source(spec, target, variant,
                  jinja::render(loader, "cuda/kernels/portable_forward.cu.jinja",
                                portable_context(facts, target, tactic, variant)));
  source.entry_points = {"tilewright_forward"};
  source.launch = {.q_tile = tactic.q_tile,
                   .threads = 32 * tactic.warps,
                   .shared_bytes = shared_bytes(spec, tactic)};
  return source;
}

// The tiles of the forward kernel for any tensors, which is the portable one whatever the target.
PortableTactic weights_tactic(const SpecFacts& facts, const Target& target,
                              const KernelVariant& variant) {
  const KernelVariant forward = {.masked = variant.masked, .lse = true, .aligned = false};
  return std::get<PortableTactic>(choose_tactic(facts, target, forward).choice);
}

KernelSource render_weights(const SpecFacts& facts, const Target& target,
                            const KernelVariant& variant, const jinja::Loader& loader) {
  const PortableTactic tactic = weights_tactic(facts, target, variant);
  Map context = portable_context(facts, target, tactic, variant);
  context["max_scores"] = false;  // which forward has written
  KernelSource source = make_source(
      facts.spec, target, variant, jinja::render(loader, "cuda/kernels/weights.cu.jinja", context));
  source.entry_points = {"tilewright_weights"};
  source.launch = {.q_tile = tactic.q_tile,
                   .threads = 32 * tactic.warps,
                   .shared_bytes = shared_bytes(facts.spec, tactic)};
  return source;
}

// What both templates of backward kernels read.
// takes_difference: the value that score_mod has by the difference of indices.
Map backward_context(const SpecFacts& facts, const Target& target, const KernelVariant& variant,
                     bool takes_difference = false) {
  const Spec& spec = facts.spec;
  constexpr ScoreForm kForm = ScoreForm::as_written;
  Map context = common_context(facts, target, ReadAhead::no, kForm);
  context["index_differences"] = facts.score_facts(kForm).takes_index_difference;
  context["reads_are_numbers"] = true;  // a derivative chooses between reads and numbers
  context.merge(derivative_context(facts, cuda_interpretation(spec), takes_difference));
  context.merge(dtype_context(spec));
  context.merge(
      Map{{"head_dim", spec.tile_head_dim()},
          {"value_dim", spec.tile_value_dim()},
          {"masked", follows_tiles(spec, variant)},
          {"aligned", variant.aligned && !spec.pads_rows()},
          {"tensor_cores", backward_uses_tensor_cores(spec)},
          {"tf32", false},
          {"bounds_indices", any(facts, kForm, &snippet::SnippetFacts::needs_bounded_indices)},
          {"gradient_count", static_cast<std::int64_t>(gradient_names(spec).size())}});
  return context;
}

// Columns of tiles and products, and the registers of a thread that products' results take.
Map hopper_backward_dims(const Spec& spec, const HopperBackwardTactic& tactic) {
  constexpr std::int64_t kColumnStep = 16, kRowsOfResult = 64, kDqColumns = 64, kThreads = 128;
  const std::int64_t head_pad = round_up(spec.head_dim, kColumnStep);
  const std::int64_t value_pad = round_up(spec.value_head_dim(), kColumnStep);
  std::set<std::int64_t> shares;
  std::set<std::int64_t> results = {kDqColumns, tactic.rows, head_pad, value_pad};
  if (tactic.is_wide) {
    shares = {tactic.first_key_share, head_pad - tactic.first_key_share, tactic.first_value_share,
              value_pad - tactic.first_value_share};
    shares.erase(0);
    results = shares;
    results.insert(tactic.rows / 2);
  }
  List counts;
  for (const std::int64_t columns : results) counts.push_back(columns * kRowsOfResult / kThreads);
  return Map{{"key_tile_dim", tactic.key_tile_dim},
             {"value_tile_dim", tactic.value_tile_dim},
             {"wide", tactic.is_wide},
             {"first_key_share", tactic.first_key_share},
             {"first_value_share", tactic.first_value_share},
             {"shares", List(shares.begin(), shares.end())},
             {"head_pad", head_pad},
             {"value_pad", value_pad},
             {"result_counts", std::move(counts)}};
}

KernelSource render_hopper_backward(const SpecFacts& facts, const Target& target,
                                    const KernelVariant& variant,
                                    const HopperBackwardTactic& tactic,
                                    const jinja::Loader& loader) {
  const bool takes_difference = tactic.difference_bytes > 0;
  Map context = backward_context(facts, target, variant, takes_difference);
  if (takes_difference) {
    context["difference_value"] =
        difference_value(facts, *facts.whole_difference, cuda_interpretation(facts.spec));
  }
  context.merge(Map{{"q_tile", tactic.columns},
                    {"kv_tile", tactic.rows},
                    {"stages", tactic.stages},
                    {"deterministic", variant.deterministic},
                    {"mask_unroll", tactic.mask_unroll},
                    {"diagonals", tactic.diagonals},
                    {"own_sums", tactic.own_sums},
                    {"row_reads", tactic.row_reads},
                    {"difference_bytes", tactic.difference_bytes},
                    {"shared_bytes", tactic.shared_bytes}});
  context.merge(hopper_backward_dims(facts.spec, tactic));
  // A mask's bits and half of 128 rows leave no register for what says that nothing is outside.
  const bool has_room = facts.spec.mask_mod.empty() || tactic.rows < 128;
  const snippet::SnippetFacts& read =
      takes_difference ? facts.whole_difference->rest : facts.score_facts(ScoreForm::as_written);
  context["linear_reads"] = has_room ? read_values(reads_by_sums(read)) : List{};
  KernelSource source =
      make_source(facts.spec, target, variant,
                  jinja::render(loader, "cuda/kernels/hopper_backward.cu.jinja", context));
  source.entry_points = {"tilewright_backward_prepare", "tilewright_backward_main",
                         "tilewright_backward_store_dq"};
  if (!gradient_names(facts.spec).empty()) {
    source.entry_points.emplace_back("tilewright_backward_finish");
  }
  if (facts.spec.is_packed()) source.entry_points.emplace_back("tilewright_backward_plan_tiles");
  source.plain_entry_points = source.entry_points;
  std::erase(source.plain_entry_points, "tilewright_backward_main");
  source.launch = {.q_tile = tactic.rows,
                   .threads = tactic.threads,
                   .shared_bytes = tactic.shared_bytes,
                   .kv_box_rows = tactic.columns};
  return source;
}

// A forced tactic's parameters are of forward kernels.
KernelSource render_backward(const SpecFacts& facts, const Target& target,
                             const KernelVariant& variant, const jinja::Loader& loader) {
  if (const auto hopper = hopper_backward_tactic(facts, target, variant)) {
    return render_hopper_backward(facts, target, variant, *hopper, loader);
  }
  const Spec& spec = facts.spec;
  Map context = backward_context(facts, target, variant);
  const BackwardTactic tactic =
      choose_backward_tactic(facts, target, variant, *context["diagonals"].as_int());
  context.merge(tactic_variables(tactic.tiles));
  context.merge(Map{{"splits_columns", splits_backward_columns(spec)},
                    {"one_sweep", tactic.one_sweep},
                    {"shared_bytes", tactic.shared_bytes}});
  KernelSource source =
      make_source(spec, target, variant,
                  jinja::render(loader, "cuda/kernels/portable_backward.cu.jinja", context));
  if (tactic.one_sweep) {
    source.entry_points = {"tilewright_backward_prepare", "tilewright_backward_one_sweep",
                           "tilewright_backward_store_dq"};
  } else {
    source.entry_points = {"tilewright_backward_prepare", "tilewright_backward_columns",
                           "tilewright_backward_rows", "tilewright_backward_finish"};
  }
  if (spec.is_packed()) source.entry_points.emplace_back("tilewright_backward_plan_columns");
  source.plain_entry_points = source.entry_points;
  std::erase(source.plain_entry_points, "tilewright_backward_columns");
  std::erase(source.plain_entry_points, "tilewright_backward_rows");
  std::erase(source.plain_entry_points, "tilewright_backward_one_sweep");
  source.launch = {.q_tile = tactic.tiles.q_tile,
                   .threads = 32 * tactic.tiles.warps,
                   .shared_bytes = tactic.shared_bytes,
                   .passing_rows = tactic.one_sweep ? tactic.tiles.kv_tile : 0};
  return source;
}

KernelSource render_decode(const SpecFacts& facts, const Target& target,
                           const KernelVariant& variant, const DecodeTactic& tactic,
                           const jinja::Loader& loader) {
  const Spec& spec = facts.spec;
  KernelSource source = make_source(spec, target, variant,
                                    jinja::render(loader, "cuda/kernels/decode.cu.jinja",
                                                  decode_context(facts, target, tactic, variant)));
  source.entry_points = {"tilewright_forward"};
  source.launch = {.q_tile = kDecodeRows,
                   .threads = 32 * tactic.warps,
                   .shared_bytes = shared_bytes(spec, tactic),
                   .blocks_per_sm = tactic.blocks_per_sm};
  return source;
}

KernelSource render_hopper(const SpecFacts& facts, const Target& target,
                           const KernelVariant& variant, const HopperTactic& tactic,
                           const jinja::Loader& loader) {
  constexpr std::int64_t kWarpgroup = 128;
  const std::int64_t q_tile = tactic.q_tile;
  const Spec& spec = facts.spec;
  KernelSource source = make_source(spec, target, variant,
                                    jinja::render(loader, "cuda/kernels/hopper_forward.cu.jinja",
                                                  hopper_context(facts, target, tactic, variant)));
  source.entry_points = {"tilewright_forward"};
  source.launch = {.q_tile = q_tile,
                   .threads = kWarpgroup * (1 + q_tile / 64 + preparing_groups(spec, tactic)),
                   .shared_bytes = shared_bytes(spec, tactic) +
                                   difference_bytes(facts, target, variant, tactic).value_or(0),
                   .kv_box_rows = tactic.kv_tile,
                   .resident_rows = variant.resident ? tactic.stages * tactic.kv_tile : 0,
                   .is_persistent = tactic.persistent};
  // A row of one key is inexact with a fixed maximum. Packed calls have kernels that round its sum.
  if (facts.fixed_max() && !spec.is_packed()) source.launch.least_kv_len = 2;
  if (spec.score_mod.empty()) {  // the scale must fit into the exponent
    source.launch.least_factor = source.launch.greatest_factor = 1.0f;
  } else if (facts.has_slope()) {  // which is divided by it
    source.launch.least_factor = 0x1p-20f;
    source.launch.greatest_factor = 0x1p20f;
  }
  return source;
}

}  // namespace

KernelSource render_cuda_kernel(const SpecFacts& facts, const Target& target,
                                const KernelVariant& variant, const jinja::Loader& loader) {
  if (variant.role == KernelRole::mask_lists)
    return render_mask_lists(facts, target, variant, loader);
  if (divides(variant, facts.spec)) return render_dividing(facts, target, variant, loader);
  if (!variant.has_snippets()) return render_plain(facts.spec, target, variant, loader);
  if (variant.role == KernelRole::plan_exact || variant.role == KernelRole::plan_proved) {
    return render_plan_kernel(facts, target, variant, loader);
  }
  if (variant.role == KernelRole::backward) return render_backward(facts, target, variant, loader);
  if (variant.role == KernelRole::weights) return render_weights(facts, target, variant, loader);
  if (!variant.is_forward()) return render_mask_kernel(facts, target, variant, loader);
  const Tactic tactic = choose_tactic(facts, target, variant);
  if (const DecodeTactic* decode = tactic.decode()) {
    return render_decode(facts, target, variant, *decode, loader);
  }
  if (const HopperTactic* hopper = tactic.hopper()) {
    return render_hopper(facts, target, variant, *hopper, loader);
  }
  return render_portable(facts, target, variant, std::get<PortableTactic>(tactic.choice), loader);
}

}  // namespace tilewright
