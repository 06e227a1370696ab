#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../cache/entry.hpp"
#include "../../generator/render/kernel_source.hpp"
#include "../api/toolchain.hpp"

namespace tilewright {

/// What turns kernel sources into binaries: the system's compiler for CPUs, NVRTC for GPUs.
class KernelCompiler {
 public:
  struct Output {
    std::vector<std::byte> binary;
    cache::Metadata facts;  ///< about the compiler and the binary; stored with it
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
std::optional<GpuResources> gpu_resources(const cache::Metadata& facts);

}  // namespace tilewright
