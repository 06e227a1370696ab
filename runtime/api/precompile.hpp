#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "../../generator/spec/manifest.hpp"
#include "../../generator/spec/target.hpp"
#include "toolchain.hpp"

namespace tilewright {

namespace cache {
struct BundleItem;  // cache/bundle_format.hpp, which writes a bundle of them
}

/// The targets that names stand for, sorted, each once. "cpu" is x86-64-v3 and -v4: what runs on
/// this machine only has no place in a bundle.
/// @throws Error with code usage for a name that is no target
std::vector<Target> bundle_targets(std::span<const std::string> names);

/// One kernel that has been made.
struct PrecompileStep {
  std::string spec;  ///< its name
  std::string target;
  KernelBuild build;
};

struct PrecompileOptions {
  Toolchain kernels = {};
  unsigned jobs = 0;  ///< kernels that are compiled at a time; 0: as many as there are processors
  /// Called for each kernel when it has been made, by one thread at a time. No lock is held
  /// meanwhile, so it may call the library. What it throws ends the precompile.
  std::function<void(const PrecompileStep&)> progress = {};
};

/// How many kernels a precompile() will make.
std::size_t precompile_count(std::span<const ManifestSpec> specs, std::span<const Target> targets);

/// Makes every kernel of each spec's closed set for each target, in the cache, and returns what
/// goes into a bundle: the same items whatever was there before, and in whatever order they were
/// compiled.
/// @throws Error as build_kernel, with a note that names the spec and the target: of the first
/// kernel
///         that fails
std::vector<cache::BundleItem> precompile(std::span<const ManifestSpec> specs,
                                          std::span<const Target> targets,
                                          const PrecompileOptions& options);

}  // namespace tilewright
