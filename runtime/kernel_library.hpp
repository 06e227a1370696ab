#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../base/diagnostics.hpp"
#include "../cache/store.hpp"
#include "../generator/jinja/engine.hpp"
#include "../generator/kernel_source.hpp"
#include "kernel_compiler.hpp"
#include "shared_object.hpp"

namespace tilewright {

/// What a build of kernels works with. Everything may be left empty: the defaults are made on first
/// use and shared by the process.
struct KernelContext {
  std::shared_ptr<cache::Store> store = {};  ///< none: the store in the default directory
  std::shared_ptr<const jinja::Loader> templates = {};  ///< none: default_template_loader()
  DiagnosticsSink diagnostics = {};                     ///< receives warnings of the default store
};

/// How one kernel came to be, for `--json`, bench and the example.
struct KernelBuild {
  std::string kernel;                    ///< "forward_masked"
  std::string source;                    ///< "memory", "disk" or "built"
  double render_ms = 0;                  ///< template to text
  double compile_ms = 0;                 ///< 0 where nothing was compiled
  double load_ms = 0;                    ///< look-up, verification and dlopen
  std::size_t bytes = 0;                 ///< of the binary
  std::optional<GpuResources> gpu = {};  ///< of a kernel for a GPU
};

/// The binary of one kernel.
struct KernelBinary {
  std::shared_ptr<const cache::Entry> entry;
  KernelSource source;
  KernelBuild build;
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

/// spec -> kernel source -> key -> binary: from the store, or compiled and put there.
/// @throws Error with code snippet, at the snippet's own line and column, where it does not
/// compile;
///         with code compiler where there is no compiler or it fails otherwise
KernelBinary build_kernel(const Spec& spec, const Target& target, const KernelId& id,
                          const KernelContext& context);

/// build_kernel for several, compiled side by side. The first error is thrown.
std::vector<KernelBinary> build_kernels(const Spec& spec, const Target& target,
                                        std::span<const KernelId> ids,
                                        const KernelContext& context);

/// build_kernel for a CPU, then loads the binary into this process. Equal kernels are loaded once.
/// @throws Error as build_kernel; with code compiler where the binary cannot be loaded
std::shared_ptr<const LoadedKernel> load_kernel(const Spec& spec, const Target& target,
                                                const KernelId& id, const KernelContext& context);

/// load_kernel for several, compiled side by side. The first error is thrown.
std::vector<std::shared_ptr<const LoadedKernel>> load_kernels(const Spec& spec,
                                                              const Target& target,
                                                              std::span<const KernelId> ids,
                                                              const KernelContext& context);

}  // namespace tilewright
