#include "generator/render/kernel_source.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/float_environment.hpp"
#include "base/nearest_name.hpp"
#include "generator/render/cuda_kernels.hpp"
#include "generator/render/derivative_context.hpp"
#include "generator/render/proved_context.hpp"
#include "generator/render/template_variables.hpp"
#include "generator/snippet/interpretation.hpp"
#include "generator/tactic/cuda_tactic.hpp"
#include "generator/tactic/decode_tactic.hpp"
#include "generator/tactic/twin_kernels.hpp"

namespace tilewright {
namespace {

// How a CPU kernel becomes a source.
struct KernelKind {
  std::string_view template_name;
  std::string_view interpretation;
  std::vector<std::string> entry_points;
  bool proves = false;  // mask_mod by intervals
};

constexpr std::string_view kForward = "cpu/kernels/forward.cpp.jinja";
constexpr std::string_view kBackward = "cpu/kernels/backward.cpp.jinja";
constexpr std::string_view kWeights = "cpu/kernels/weights.cpp.jinja";
constexpr std::string_view kMask = "cpu/kernels/mask.cpp.jinja";
constexpr std::string_view kEvaluate = "cpu/kernels/evaluate.cpp.jinja";
constexpr std::string_view kSlopes = "cpu/kernels/evaluate_slopes.cpp.jinja";
constexpr const char* kSlopesOfRow = "tilewright_evaluate_slopes";
constexpr const char* kAddGradients = "tilewright_add_gradients";
constexpr const char* kMaskRow = "tilewright_mask_row";
constexpr const char* kEvaluateRow = "tilewright_evaluate_row";

KernelKind kernel_kind(KernelRole role) {
  switch (role) {
    case KernelRole::forward:
      return {kForward,
              "fast",
              {"tilewright_q_tile", "tilewright_scratch_bytes", "tilewright_forward"}};
    case KernelRole::backward:
      return {kBackward,
              "fast",
              {"tilewright_q_tile", "tilewright_kv_tile", "tilewright_scratch_bytes",
               "tilewright_backward_rows", "tilewright_backward_columns"}};
    case KernelRole::weights:
      return {kWeights,
              "fast",
              {"tilewright_q_tile", "tilewright_scratch_bytes", "tilewright_weights"}};
    case KernelRole::mask_exact:
    case KernelRole::plan_exact:
      return {kMask, "fast", {kMaskRow}};
    case KernelRole::mask_proved:
    case KernelRole::plan_proved:
      return {kMask, "fast", {kMaskRow, "tilewright_mask_extrema"}, true};
    case KernelRole::evaluate_float:
      return {kEvaluate, "float", {kEvaluateRow}};
    case KernelRole::evaluate_double:
      return {kEvaluate, "double", {kEvaluateRow}};
    case KernelRole::evaluate_slopes_float:
      return {kSlopes, "float", {kSlopesOfRow, kAddGradients}};
    case KernelRole::evaluate_slopes_double:
      return {kSlopes, "double", {kSlopesOfRow, kAddGradients}};
    case KernelRole::evaluate_checked:
      return {kEvaluate, "checked", {kEvaluateRow, "tilewright_take_findings"}};
    case KernelRole::mask_lists:
    case KernelRole::merge:
    case KernelRole::append:
    case KernelRole::quantise:
      break;
  }
  throw Error(ErrorCode::internal, "the kernel has no snippets, or does not exist for a CPU");
}

// A variant may be one of the other kind of target.
void require_exists(const KernelVariant& variant, const Target& target) {
  std::vector<std::string> names;
  for (const KernelVariant& existing : kernel_variants(target)) {
    if (existing == variant) return;
    names.push_back(existing.name());
  }
  const char* const here = target.is_cpu() ? "CPU" : "GPU";
  const char* const there = target.is_cpu() ? "GPU" : "CPU";
  throw Error({.code = ErrorCode::usage,
               .message = fmt::format("there is no kernel \"{}\" for a {}", variant.name(), here),
               .notes = {"kernels are " + one_of(names)},
               .hint = fmt::format("{} is a kernel for the {}", variant.name(), there)});
}

void require_gradients(const Spec& spec) {
  if (!spec.gradients.empty()) return;
  throw Error(ErrorCode::usage, "the spec names no gradients, so it has no backward kernel",
              R"(add "gradients": ["q", "k", "v"] to the spec)");
}

void require_weights(const Spec& spec) {
  if (spec.outputs.weights) return;
  throw Error(ErrorCode::usage, "the spec's outputs do not name weights, so it has no such kernel",
              R"(write "outputs": ["out", "lse", "weights"])");
}

std::string march(const Target& target) {
  if (target.name() == "cpu") return "-march=native";
  return "-march=" + target.name().substr(std::string_view("cpu-").size());
}

// Never -ffast-math: kernels use infinities, and a shared object linked with it changes the
// floating-point modes of the whole process.
std::vector<std::string> common_options(const Target& target) {
  return {march(target),
          "-O3",
          "-mprefer-vector-width=512",
          "-fno-math-errno",
          "-fno-trapping-math",
          "-ffp-contract=fast",
          "-Wno-psabi",
          "-fvisibility=hidden"};
}

std::vector<std::string> compile_options(const Target& target, const Interpretation& interpretation,
                                         const SpecFacts& facts) {
  std::vector<std::string> options = common_options(target);
  options.insert(options.end(), interpretation.options.begin(), interpretation.options.end());
  // Where clang knows that a divisor is zero it deletes the code, and the result is anything. Now
  // it traps, as a division does at run time. A divisor that is a number costs nothing.
  if (interpretation.options.empty() && facts.any_snippet_divides()) {
    options.insert(options.end(),
                   {"-fsanitize=integer-divide-by-zero", "-fsanitize-undefined-trap-on-error"});
  }
  return options;
}

// The mask's kernel must agree with the forward kernel that skips by it, so both read alike. Our
// own functions are as exact as CUDA's precise ones (docs/math.md), so they serve in every dtype.
std::string_view interpretation_name(const KernelKind& kind, const Spec& spec) {
  return kind.interpretation == "fast" && spec.precise_math.value_or(false) ? "float"
                                                                            : kind.interpretation;
}

// A forced tactic is for forward kernels. verify evaluates snippets on the CPU whatever it forces.
CpuTactic tactic_of(const KernelKind& kind, const SpecFacts& facts, const Target& target) {
  if (kind.template_name == kForward || !facts.spec.tactic) {
    return std::get<CpuTactic>(choose_tactic(facts, target).choice);
  }
  Spec free = facts.spec;
  free.tactic.reset();
  return std::get<CpuTactic>(choose_tactic(free, target).choice);
}

ReadAhead read_ahead_of(const KernelKind& kind) {
  const bool has_rows = kind.template_name == kForward || kind.template_name == kWeights;
  if (has_rows) return ReadAhead::lanes_are_rows;
  return kind.template_name == kMask ? ReadAhead::lanes_are_columns : ReadAhead::no;
}

std::optional<KernelVariant> fallback_of(const KernelVariant& variant) {
  if (variant.role == KernelRole::mask_proved) return KernelVariant{.role = KernelRole::mask_exact};
  if (variant.role == KernelRole::plan_proved) return KernelVariant{.role = KernelRole::plan_exact};
  return std::nullopt;
}

KernelRows packed_rows(const Target& target) {
  return target.is_cpu() ? KernelRows::all : KernelRows::prefill;
}

bool is_of_packed(KernelRows rows, const Spec& spec, const Target& target) {
  if (rows == packed_rows(target)) return true;
  return rows == KernelRows::decode && has_decode_kernel(spec);
}

// A call of a spec with mask_mod always has a block mask, and the decode kernel follows it.
bool is_of_dense(const KernelVariant& variant, const Spec& spec, const Target& target) {
  if (variant.rows == KernelRows::all) return true;
  return variant.rows == KernelRows::decode && !target.is_cpu() && has_decode_kernel(spec) &&
         (variant.masked || spec.mask_mod.empty());
}

// Kernels of packed layouts have no twins with a block mask: the plan decides tiles.
bool is_forward_of(const KernelVariant& variant, const Spec& spec, const Target& target) {
  if (variant.lse != spec.outputs.lse) return false;
  if (!spec.is_packed()) return is_of_dense(variant, spec, target);
  return is_of_packed(variant.rows, spec, target) && !variant.masked;
}

// A kernel without snippets. Specs with the same dtypes share it.
KernelSource render_plain_for_cpu(const Spec& spec, const Target& target,
                                  const KernelVariant& variant, const jinja::Loader& loader) {
  const std::string name = variant.name();
  jinja::Rendered rendered =
      jinja::render(loader, fmt::format("cpu/kernels/{}.cpp.jinja", name), dtype_context(spec));
  return {.variant = variant,
          .target = target,
          .text = std::move(rendered.text),
          .map = std::move(rendered.map),
          .template_files = std::move(rendered.files),
          .options = common_options(target),
          .entry_points = {"tilewright_" + name}};
}

// append of a spec with scales, and quantise: they divide by them.
KernelSource render_dividing_for_cpu(const SpecFacts& facts, const Target& target,
                                     const KernelVariant& variant, const jinja::Loader& loader) {
  const Interpretation& types = interpretation("fast");
  jinja::Map context = snippet_context(facts, types, ReadAhead::no);
  context.merge(dtype_context(facts.spec));
  context["scales_rows"] = true;
  const std::string name = variant.name();
  jinja::Rendered rendered =
      jinja::render(loader, fmt::format("cpu/kernels/{}.cpp.jinja", name), context);
  return {.variant = variant,
          .target = target,
          .text = std::move(rendered.text),
          .map = std::move(rendered.map),
          .template_files = std::move(rendered.files),
          .options = compile_options(target, types, facts),
          .entry_points = {"tilewright_" + name}};
}

// Every template there may be, all of them empty.
class EmptyTemplates : public jinja::Loader {
 public:
  std::optional<std::string> load(std::string_view) const override { return std::string(); }
  std::vector<std::string> names() const override { return {}; }
};

}  // namespace

std::int64_t dynamic_shared_bytes(const KernelSource& source, std::string_view entry_point) {
  const std::vector<std::string>& plain = source.plain_entry_points;
  const bool is_plain = std::find(plain.begin(), plain.end(), entry_point) != plain.end();
  return is_plain ? 0 : source.launch.shared_bytes;
}

std::vector<KernelVariant> kernel_set(const SpecFacts& facts, const Target& target) {
  const Spec& spec = facts.spec;
  const bool has_mask = !spec.mask_mod.empty();
  const bool proves = facts.may_prove_mask();
  const auto is_of_spec = [&](const KernelVariant& variant) {
    switch (variant.role) {
      case KernelRole::forward:
        return is_forward_of(variant, spec, target) && has_kernel(facts, target, variant);
      case KernelRole::backward:
        return !spec.gradients.empty() && !(spec.is_packed() && variant.masked) &&
               has_kernel(facts, target, variant);
      case KernelRole::weights:
        return spec.outputs.weights;
      case KernelRole::mask_lists:
      case KernelRole::mask_exact:
        return has_mask && !spec.is_packed();
      case KernelRole::mask_proved:
        return proves && !spec.is_packed();
      case KernelRole::plan_exact:
        return spec.is_packed();
      case KernelRole::plan_proved:
        return proves && spec.is_packed();
      case KernelRole::merge:
        return spec.outputs.lse && !is_quantised(spec.output_dtype());
      case KernelRole::append:
        return spec.is_paged();
      case KernelRole::quantise:
        return is_quantised(spec.key_value_dtype());
      default:
        return false;
    }
  };
  std::vector<KernelVariant> variants = kernel_variants(target);
  std::erase_if(variants, [&](const KernelVariant& variant) { return !is_of_spec(variant); });
  return variants;
}

KernelVariant forward_kernel(const Spec& spec, const Target& target, bool takes_block_mask) {
  if (spec.is_packed()) return {.rows = packed_rows(target), .lse = spec.outputs.lse};
  return {.masked = takes_block_mask || !spec.mask_mod.empty(), .lse = spec.outputs.lse};
}

KernelVariant backward_kernel(const Spec& spec, bool takes_block_mask) {
  const bool follows_list = !spec.is_packed() && (takes_block_mask || !spec.mask_mod.empty());
  return {.role = KernelRole::backward, .masked = follows_list};
}

KernelVariant weights_kernel(const Spec& spec, bool takes_block_mask) {
  return {.role = KernelRole::weights, .masked = takes_block_mask || !spec.mask_mod.empty()};
}

KernelVariant mask_kernel(const SpecFacts& facts) {
  const bool proves = facts.may_prove_mask();
  if (facts.spec.is_packed()) {
    return {.role = proves ? KernelRole::plan_proved : KernelRole::plan_exact};
  }
  return {.role = proves ? KernelRole::mask_proved : KernelRole::mask_exact};
}

KernelSource render_kernel(const SpecFacts& facts, const Target& target,
                           const KernelVariant& variant, const jinja::Loader& loader) {
  const DefaultFloatEnvironment floats;  // numbers of snippets are folded
  require_exists(variant, target);
  const bool needs_gradients = variant.role == KernelRole::backward ||
                               variant.role == KernelRole::evaluate_slopes_float ||
                               variant.role == KernelRole::evaluate_slopes_double;
  if (needs_gradients) require_gradients(facts.spec);
  if (variant.role == KernelRole::weights) require_weights(facts.spec);
  if (!target.is_cpu()) return render_cuda_kernel(facts, target, variant, loader);
  if (divides(variant, facts.spec)) {
    return render_dividing_for_cpu(facts, target, variant, loader);
  }
  if (!variant.has_snippets()) return render_plain_for_cpu(facts.spec, target, variant, loader);
  const KernelKind kind = kernel_kind(variant.role);
  const Interpretation& types = interpretation(interpretation_name(kind, facts.spec));
  const CpuTactic tactic = tactic_of(kind, facts, target);
  jinja::Map context =
      cpu_context(facts, tactic, types, read_ahead_of(kind), variant.masked, variant.lse);
  if (kind.template_name == kSlopes) context.merge(derivative_context(facts, types));
  if (kind.template_name == kBackward) {
    context.merge(derivative_context(facts, types));
    context["kv_lanes"] = std::gcd(tactic.q_tile, facts.spec.block[1]);
  }
  if (kind.template_name == kMask) {
    context["proved"] = kind.proves
                            ? proved_context(facts, "cpu/mask/undecided.hpp", extrema_tables(facts))
                            : jinja::Value();
    context["tables"] = kind.proves ? tables_context(facts) : jinja::List();
  }
  jinja::Rendered rendered = jinja::render(loader, kind.template_name, context);
  std::vector<std::string> entry_points = kind.entry_points;
  if (kind.template_name == kEvaluate && facts.spec.has_other_snippets()) {
    entry_points.emplace_back("tilewright_evaluate_scale");
  }
  if (kind.template_name == kBackward && facts.spec.is_packed()) {
    entry_points.pop_back();
    for (const char* const part : {"begin", "add", "store"}) {
      entry_points.push_back(fmt::format("tilewright_backward_{}_columns", part));
    }
  }
  return {.variant = variant,
          .target = target,
          .text = std::move(rendered.text),
          .map = std::move(rendered.map),
          .template_files = std::move(rendered.files),
          .options = compile_options(target, types, facts),
          .entry_points = std::move(entry_points),
          .launch = {},
          .extrema_tables = kind.proves ? extrema_tables(facts) : std::vector<ExtremaTable>(),
          .fallback = fallback_of(variant)};
}

KernelSource kernel_metadata(const SpecFacts& facts, const Target& target,
                             const KernelVariant& variant) {
  return render_kernel(facts, target, variant, EmptyTemplates());
}

std::string with_line_directives(const KernelSource& source) {
  std::string text;
  Origin expected;
  int line = 1;
  for (std::size_t begin = 0; begin < source.text.size(); ++line) {
    const std::size_t newline = source.text.find('\n', begin);
    const std::size_t end = newline == std::string::npos ? source.text.size() : newline + 1;
    const Origin origin = source.map.origin_of(line);
    if (origin.file != expected.file || origin.line != expected.line) {
      text += fmt::format("#line {} \"{}\"\n", origin.line, origin.file);
    }
    text.append(source.text, begin, end - begin);
    expected = origin;
    ++expected.line;
    begin = end;
  }
  return text;
}

}  // namespace tilewright
