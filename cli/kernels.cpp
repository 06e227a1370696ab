#include "cli/kernels.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"
#include "runtime/call/few_rows.hpp"
#include "runtime/compile/parameter_room.hpp"

namespace tilewright::cli {

Target target_or_default(const Spec& spec, const std::string& name) {
  Target target = name.empty() ? Target::host_cpu() : Target::parse(name);
  if (!target.is_cpu()) require_parameter_room(spec);
  return target;
}

KernelVariant kernel_or_default(const Spec& spec, const Target& target, const std::string& name) {
  if (name.empty()) return forward_kernel(spec, target);
  std::vector<std::string> names;
  const std::optional<KernelVariant> wanted = KernelVariant::find(name);
  for (const KernelVariant& variant : kernel_set(spec, target)) {
    if (variant == wanted) return variant;
    names.push_back(variant.name());
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = "this spec has " + one_of(names);
  throw Error(ErrorCode::usage, fmt::format("unknown kernel \"{}\"", name), hint);
}

KernelVariant kernel_of_calls(const Attention& attention, const Shape& shape) {
  const std::vector<KernelBuild> builds = attention.builds();
  const KernelVariant first = KernelVariant::parse(builds.front().kernel);
  if (attention.spec().is_packed()) return first;
  const bool decodes = has_few_rows(attention.spec(), shape);
  const bool splits = !decodes && attention.workspace_size(shape) > 0;
  for (const KernelBuild& build : builds) {
    const KernelVariant variant = KernelVariant::parse(build.kernel);
    if (decodes && variant.rows == KernelRows::decode && variant.aligned) return variant;
    if (splits && variant.split) return variant;
  }
  return first;
}

}  // namespace tilewright::cli
