#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../cache/entry.hpp"
#include "../generator/kernel_source.hpp"

namespace tilewright {

/// What a GPU kernel takes of a multiprocessor, as its compiler says. Where a source holds several
/// kernels, that of the greediest.
struct GpuResources {
  std::int64_t registers = 0;     ///< of a thread
  std::int64_t spill_bytes = 0;   ///< registers that did not fit: stored plus loaded, of a thread
  std::int64_t shared_bytes = 0;  ///< of a block of threads, static plus dynamic
  /// ptxas's own lines on what costs speed silently: C7508, C7510 to C7515. Of all kernels.
  std::vector<std::string> performance_warnings = {};
};

/// What turns kernel sources into binaries: the system's compiler for CPUs, NVRTC for GPUs.
class KernelCompiler {
 public:
  struct Output {
    std::vector<std::byte> binary;
    cache::Metadata facts;  ///< about the compiler and the binary; stored beside it
  };

  virtual ~KernelCompiler() = default;
  KernelCompiler(const KernelCompiler&) = delete;
  KernelCompiler& operator=(const KernelCompiler&) = delete;

  /// Changes whenever the same source could give other bytes.
  virtual const std::string& identity() const = 0;
  /// @throws Error with code snippet at the snippet's own line and column, kernel_template, or
  ///         compiler
  virtual Output compile(const Spec& spec, const KernelSource& source) const = 0;

 protected:
  KernelCompiler() = default;
};

/// @throws Error with code compiler where there is none for this target
std::unique_ptr<const KernelCompiler> find_compiler(const Target& target);

/// What compile() found out about a GPU kernel; none for a CPU's, or where it is not known.
std::optional<GpuResources> gpu_resources(const KernelSource& source, const cache::Metadata& facts);

}  // namespace tilewright
