#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../cache/bundles.hpp"
#include "../../cache/store.hpp"
#include "../../generator/render/engine/engine.hpp"
#include "../../generator/render/kernel_source.hpp"
#include "../api/toolchain.hpp"
#include "../compile/kernel_compiler.hpp"
#include "../compile/shared_object.hpp"

namespace tilewright {

/// The toolchain with its defaults filled in.
/// @throws Error with code usage or file where the environment cannot be understood
Toolchain with_defaults(Toolchain toolchain);

/// The bundles that TILEWRIGHT_BUNDLES names, opened once per process.
/// @param diagnostics hears what is wrong with them, unless an earlier caller's sink did
std::shared_ptr<const cache::Bundles> default_bundles(const DiagnosticsSink& diagnostics);

/// Whether TILEWRIGHT_JIT lets kernels be compiled: unless it is "0" or "off".
/// @throws Error with code usage for another value than those, "1" and "on", an empty one too
bool jit_is_allowed();

/// Whether TILEWRIGHT_LINEINFO asks for the lines of GPU kernels: where it is "1" or "on".
/// @throws Error as switch_variable
bool line_info_is_wanted();

/// A kernel as caches are asked for it, with the options that the toolchain adds.
KernelSource requested_source(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                              const Toolchain& toolchain);

/// The binary of one kernel.
struct KernelBinary {
  std::shared_ptr<const cache::Entry> entry;
  KernelSource source;  ///< without its text where a bundle had it, which then is not rendered
  KernelBuild build;

  /// False for a kernel with a fallback whose source does not compile: the entry is empty, and
  /// stored like any other, so that no process tries again.
  bool compiles() const { return !entry->payload.empty(); }
};

/// A kernel that can be called.
struct LoadedKernel {
  std::shared_ptr<const SharedObject> object;  ///< shared by all who loaded an equal kernel
  KernelSource source;
  KernelBuild build;

  /// A symbol of the kernel; templates/abi lists them.
  /// @throws Error with code internal where the kernel has none of that name
  template <typename T>
  T* entry(const char* name) const {
    return reinterpret_cast<T*>(object->symbol(name));
  }
};

/// The first of `targets`, the best one first, for which the bundles hold all of these kernels, or
/// the fallbacks of those that they lack; nothing where there is none. Opens no compiler.
std::optional<Target> bundled_target(const SpecFacts& facts, std::span<const Target> targets,
                                     std::span<const KernelVariant> ids,
                                     const Toolchain& toolchain);

/// The same for the store, whatever compiled what it holds. Slow: for machines without a compiler.
std::optional<Target> stored_target(const SpecFacts& facts, std::span<const Target> targets,
                                    std::span<const KernelVariant> ids, const Toolchain& toolchain);

/// spec -> kernel source -> request -> key -> binary: from a bundle, from the store, or compiled
/// and put there. What a bundle has needs no compiler.
/// @throws Error with code snippet, at the snippet's own line and column, where it does not
/// compile;
///         with code compiler where there is no compiler or it fails otherwise;
///         with code missing_kernel where nothing may be compiled and no cache has it
KernelBinary build_kernel(const SpecFacts& facts, const Target& target, const KernelVariant& id,
                          const Toolchain& toolchain);

/// build_kernel for several, compiled side by side. The first error is thrown.
std::vector<KernelBinary> build_kernels(const SpecFacts& facts, const Target& target,
                                        std::span<const KernelVariant> ids,
                                        const Toolchain& toolchain);

/// build_kernels with the fallback of each that does not compile in its place.
std::vector<KernelBinary> build_or_fallback_kernels(const SpecFacts& facts, const Target& target,
                                                    std::span<const KernelVariant> ids,
                                                    const Toolchain& toolchain);

/// build_kernel for a CPU, or its fallback where it does not compile, then loads the binary into
/// this process. Equal kernels are loaded once.
/// @throws Error as build_kernel; with code compiler where the binary cannot be loaded
std::shared_ptr<const LoadedKernel> load_kernel(const SpecFacts& facts, const Target& target,
                                                const KernelVariant& id,
                                                const Toolchain& toolchain);

/// load_kernel for several, compiled side by side. The first error is thrown.
std::vector<std::shared_ptr<const LoadedKernel>> load_kernels(const SpecFacts& facts,
                                                              const Target& target,
                                                              std::span<const KernelVariant> ids,
                                                              const Toolchain& toolchain);

}  // namespace tilewright
