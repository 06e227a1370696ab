#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "../library/kernel_library.hpp"
#include "context.hpp"

namespace tilewright::cuda {

/// A kernel that can be launched in one context.
struct Kernel {
  KernelVariant variant;   ///< of the binary
  std::string_view entry;  ///< its entry point there: "tilewright_forward"
  Function function = nullptr;
  KernelLaunch launch;
};

/// All kernels of one Attention in one context.
class ContextKernels {
 public:
  /// Loads them into the scope's context.
  /// @param binaries outlive this object
  /// @throws Error with code device where its GPU cannot run them
  ContextKernels(const Driver& driver, const ContextScope& scope,
                 const std::vector<KernelBinary>& binaries);
  ~ContextKernels();
  ContextKernels(const ContextKernels&) = delete;
  ContextKernels& operator=(const ContextKernels&) = delete;

  bool is_of(const ContextScope& scope) const {
    return context_ == scope.context() && context_id_ == scope.id();
  }
  const DeviceFacts& gpu() const { return gpu_; }
  /// The number of a launch, for ForwardArguments: another for each, but for 2^32 - 1 launches
  /// between.
  std::uint32_t next_launch() const {
    std::uint32_t launch = 0;
    while (launch == 0) launch = ++launches_;
    return launch;
  }
  /// The kernel at an entry point of a variant's binary; null if no binary is of that variant or it
  /// has no such entry point.
  const Kernel* find(const KernelVariant& variant, std::string_view entry) const;
  /// The same.
  /// @throws Error with code internal if there is none
  const Kernel& kernel(const KernelVariant& variant, std::string_view entry) const;

 private:
  void load(const KernelBinary& binary);
  void unload() noexcept;

  const Driver& driver_;
  Context context_;
  std::uint64_t context_id_;
  DeviceFacts gpu_;
  std::vector<Module> modules_;
  std::vector<Kernel> kernels_;  // all entry points of all binaries
  mutable std::atomic<std::uint32_t> launches_ = 0;
};

/// The kernels of one Attention in every context that it was used in. A look-up takes no lock.
class Modules {
 public:
  Modules(const Driver& driver, std::vector<KernelBinary> binaries);
  ~Modules();

  const std::vector<KernelBinary>& binaries() const { return binaries_; }

  /// Loads the kernels where that has not been done in this context.
  /// @throws Error as ContextKernels
  const ContextKernels& in(const ContextScope& scope) const;

 private:
  struct Node {
    Node(const Driver& driver, const ContextScope& scope, const std::vector<KernelBinary>& binaries,
         Node* following)
        : kernels(driver, scope, binaries), next(following) {}
    ContextKernels kernels;
    Node* next;
  };
  const Node* find(const ContextScope& scope) const;

  const Driver& driver_;
  std::vector<KernelBinary> binaries_;
  mutable std::mutex mutex_;                    // held while a node is made
  mutable std::atomic<Node*> first_ = nullptr;  // nodes are never taken out
};

}  // namespace tilewright::cuda
