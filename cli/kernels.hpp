#pragma once

#include <string>
#include <vector>

#include "generator/render/kernel_source.hpp"
#include "generator/spec/spec.hpp"
#include "generator/spec/target.hpp"
#include "runtime/api/attention.hpp"

namespace tilewright::cli {

/// The target that --target names; without one that of the device which `run` would take.
/// @throws Error with code usage; with code spec where no launch on it takes the spec's kernels
Target target_or_default(const Spec& spec, const std::string& name);

/// The member of the spec's closed set that --kernel names; an empty name is the
/// forward kernel that `run` would use for aligned, dense tensors.
/// @throws Error with code usage, naming the nearest one
KernelVariant kernel_or_default(const Spec& spec, const Target& target, const std::string& name);

/// The kernel that an Attention's calls of this shape with aligned tensors take; dense ones have a
/// workspace.
KernelVariant kernel_of_calls(const Attention& attention, const Shape& shape);

}  // namespace tilewright::cli
