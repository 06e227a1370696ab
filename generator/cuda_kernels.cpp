#include "generator/cuda_kernels.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "generator/cuda_tactic.hpp"
#include "generator/kernel_context.hpp"
#include "generator/reading.hpp"

namespace tilewright {
namespace {

using jinja::List;
using jinja::Map;

constexpr std::string_view kMaskExact = "mask_exact";

struct ForwardKind {
  bool masked = false;
  bool lse = false;
  bool aligned = true;

  std::string name() const {
    return fmt::format("forward{}{}{}", masked ? "_masked" : "", lse ? "_lse" : "",
                       aligned ? "" : "_unaligned");
  }
};

std::vector<ForwardKind> forward_kinds() {
  std::vector<ForwardKind> kinds;
  for (const bool masked : {false, true}) {
    for (const bool lse : {false, true}) {
      for (const bool aligned : {true, false}) kinds.push_back({masked, lse, aligned});
    }
  }
  return kinds;
}

[[noreturn]] void refuse(const KernelId& id) {
  std::vector<std::string> names;
  for (const ForwardKind& kind : forward_kinds()) names.push_back(kind.name());
  names.emplace_back(kMaskExact);
  const std::string hint = id.name.starts_with("evaluate_") ? "evaluate_* are kernels for the CPU"
                                                            : did_you_mean(id.name, names);
  throw Error({.code = ErrorCode::usage,
               .message = fmt::format("there is no kernel \"{}\" for a GPU", id.name),
               .place = std::nullopt,
               .notes = {"kernels are " + one_of(names)},
               .hint = hint});
}

ForwardKind forward_kind(const KernelId& id) {
  for (const ForwardKind& kind : forward_kinds()) {
    if (kind.name() == id.name) return kind;
  }
  refuse(id);
}

// The mask's kernel must agree with the forward kernel that skips by it, so both read alike.
Reading cuda_reading(const Spec& spec) {
  Reading types = reading(spec.precise_math ? "float" : "fast");
  types.buffer_header = "cuda/device/buffer.hpp";
  return types;
}

// ptxas says in its log what a kernel uses; the log has no influence on the kernel.
std::vector<std::string> compile_options(const Spec& spec) {
  std::vector<std::string> options = {"--std=c++20",     "-minimal", "-default-device",
                                      "--device-int128", "-w",       "--ptxas-options=-v"};
  if (!spec.precise_math) {
    options.insert(options.end(), {"--prec-div=false", "--prec-sqrt=false"});
  }
  return options;
}

std::string_view tensor_type(DType dtype) {
  return dtype == DType::f32 ? "float" : dtype == DType::f16 ? "Half" : "BFloat16";
}

Map common_context(const Spec& spec) {
  Map context = snippet_context(spec, cuda_reading(spec), {});
  context.merge(Map{{"block", List{spec.block[0], spec.block[1]}},
                    {"buffer_count", static_cast<std::int64_t>(spec.buffers.size())},
                    {"scalar_count", static_cast<std::int64_t>(spec.scalars.size())}});
  return context;
}

Map forward_context(const Spec& spec, const Tactic& tactic, const ForwardKind& kind) {
  const auto& parameters = tactic.parameters;
  Map context = common_context(spec);
  context.merge(Map{{"head_dim", spec.head_dim},
                    {"value_dim", spec.value_head_dim()},
                    {"q_tile", parameters.at("q_tile")},
                    {"kv_tile", parameters.at("kv_tile")},
                    {"warps", parameters.at("warps")},
                    {"stages", parameters.at("stages")},
                    {"row_tiles", row_tiles(spec, tactic)},
                    {"q_in_registers", parameters.at("q_in_registers") != 0},
                    {"blocks_per_sm", parameters.at("blocks_per_sm")},
                    {"mask_unroll", parameters.at("mask_unroll")},
                    {"shared_bytes", shared_bytes(spec, tactic)},
                    {"masked", kind.masked},
                    {"lse", kind.lse},
                    {"aligned", kind.aligned},
                    {"tensor_cores", uses_tensor_cores(spec)},
                    {"q_type", tensor_type(spec.dtype)},
                    {"kv_type", tensor_type(spec.key_value_dtype())},
                    {"out_type", tensor_type(spec.output_dtype())}});
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
          .launch = {}};
}

}  // namespace

std::vector<KernelId> cuda_kernel_set(const Spec& spec) {
  std::vector<KernelId> ids;
  for (const ForwardKind& kind : forward_kinds()) {
    if (kind.lse == spec.outputs.lse) ids.push_back({kind.name()});
  }
  if (!spec.mask_mod.empty()) ids.push_back({std::string(kMaskExact)});
  return ids;
}

KernelSource render_cuda_kernel(const Spec& spec, const Target& target, const KernelId& id,
                                const jinja::Loader& loader) {
  if (id.name == kMaskExact) {
    KernelSource source = make_source(
        spec, target, id, jinja::render(loader, "cuda/mask_exact.cu.jinja", common_context(spec)));
    source.entry_points = {"tilewright_mask_count", "tilewright_mask_scan", "tilewright_mask_fill"};
    return source;
  }
  const ForwardKind kind = forward_kind(id);
  const Tactic tactic = choose_tactic(spec, target);
  KernelSource source = make_source(
      spec, target, id,
      jinja::render(loader, "cuda/forward.cu.jinja", forward_context(spec, tactic, kind)));
  source.entry_points = {"tilewright_forward"};
  source.launch = {.q_tile = tactic.parameters.at("q_tile"),
                   .threads = 32 * tactic.parameters.at("warps"),
                   .shared_bytes = shared_bytes(spec, tactic)};
  return source;
}

}  // namespace tilewright
