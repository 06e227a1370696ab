#include "cli/kernels.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest_name.hpp"

namespace tilewright::cli {

Target target_or_default(const std::string& name) {
  return name.empty() ? Target::host_cpu() : Target::parse(name);
}

KernelId default_kernel(const Spec& spec) {
  const std::string name = spec.mask_mod.empty() ? "forward" : "forward_masked";
  return {spec.outputs.lse ? name + "_lse" : name};
}

KernelId kernel_or_default(const Spec& spec, const Target& target, const std::string& name) {
  if (name.empty()) return default_kernel(spec);
  std::vector<std::string> names;
  for (const KernelId& id : kernel_set(spec, target)) {
    if (id.name == name) return id;
    names.push_back(id.name);
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = "this spec has " + one_of(names);
  throw Error(ErrorCode::usage, fmt::format("unknown kernel \"{}\"", name), hint);
}

}  // namespace tilewright::cli
