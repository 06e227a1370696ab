#pragma once

#include <cstdint>
#include <string_view>

#include "../../templates/abi/cuda_packed_backward.hpp"
#include "backward.hpp"
#include "driver.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// What a call's workspace begins at a multiple of.
inline constexpr std::int64_t kBackwardAlignment = 16;

/// @throws Error with code tensor for more blocks of threads than a launch takes
unsigned launch_grid(std::int64_t blocks);

/// @throws Error with code tensor where call.workspace is smaller than `bytes`, not contiguous or
/// not aligned
void require_backward_workspace(const BackwardCall& call, std::int64_t bytes);

/// What the portable kernels share; kernels of dense calls take the first part.
abi::cuda::PackedBackwardArguments backward_arguments(const BackwardCall& call,
                                                      const BackwardTiles& tiles);

/// Launches entry points of one binary in a call's stream.
class BackwardLaunch {
 public:
  /// All outlive this object.
  BackwardLaunch(const Driver& driver, const ContextKernels& kernels, const KernelVariant& variant,
                 const BackwardCall& call)
      : driver_(driver), kernels_(kernels), variant_(variant), call_(call) {}

  const KernelLaunch& launch_of(std::string_view entry) const { return kernel(entry).launch; }

  /// A kernel with the tactic's threads and shared memory.
  /// @throws Error with code tensor for more blocks than a launch takes
  void tiled(std::string_view entry, std::int64_t blocks, void** parameters) const;

  /// A kernel with kPlainThreads and no dynamic shared memory.
  void plain(std::string_view entry, std::int64_t blocks, void** parameters) const;

  /// Zeros.
  void clear(void* memory, std::int64_t bytes) const;

 private:
  const Kernel& kernel(std::string_view entry) const { return kernels_.kernel(variant_, entry); }
  Stream stream() const { return static_cast<Stream>(call_.forward.stream); }
  void run(std::string_view entry, std::int64_t blocks, std::int64_t threads,
           std::int64_t shared_bytes, void** parameters) const;

  const Driver& driver_;
  const ContextKernels& kernels_;
  KernelVariant variant_;
  const BackwardCall& call_;
};

}  // namespace tilewright::cuda
