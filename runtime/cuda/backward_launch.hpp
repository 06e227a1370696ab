#pragma once

#include <cstdint>
#include <string_view>

#include "../../templates/abi/cuda_packed_backward.hpp"
#include "../call/backward_call.hpp"
#include "backward_tiles.hpp"
#include "launch_scope.hpp"

namespace tilewright::cuda {

/// What a call's workspace begins at a multiple of.
inline constexpr std::int64_t kBackwardAlignment = 16;

/// @throws Error with code tensor where call.workspace is smaller than `bytes`, not contiguous or
/// not aligned
void require_backward_workspace(const BackwardCall& call, std::int64_t bytes);

/// What the portable kernels share; kernels of dense calls take the first part.
abi::cuda::PackedBackwardArguments backward_arguments(const BackwardCall& call,
                                                      const BackwardTiles& tiles);

/// What a plan says of sequences that share rows of k.
int* shared_rows_flag(const PlanState& plan);

/// Launches entry points of one binary in a call's stream.
class BackwardLaunch {
 public:
  /// All outlive this object.
  BackwardLaunch(const LaunchScope& on, const KernelVariant& variant, const BackwardCall& call)
      : on_(on), variant_(variant), call_(call) {}

  const KernelLaunch& launch_of(std::string_view entry) const { return kernel(entry).launch; }

  /// A kernel with the tactic's threads and shared memory.
  /// @throws Error with code tensor for more blocks than a launch takes
  template <typename... Parameters>
  void tiled(std::string_view entry, std::int64_t blocks, Parameters&... parameters) const {
    const Kernel& found = kernel(entry);
    run(found,
        {.blocks = blocks,
         .threads = found.launch.threads,
         .shared_bytes = found.launch.shared_bytes},
        parameters...);
  }

  /// A kernel with kPlainThreads and no dynamic shared memory.
  template <typename... Parameters>
  void plain(std::string_view entry, std::int64_t blocks, Parameters&... parameters) const {
    run(kernel(entry), {.blocks = blocks, .threads = abi::cuda::kPlainThreads}, parameters...);
  }

  /// Zeros.
  void clear(void* memory, std::int64_t bytes) const;

 private:
  const Kernel& kernel(std::string_view entry) const { return on_.kernels.kernel(variant_, entry); }

  template <typename... Parameters>
  void run(const Kernel& kernel, LaunchConfig config, Parameters&... parameters) const {
    if (config.blocks == 0) return;  // a packed call without rows
    config.blocks = launchable(config.blocks);
    config.stream = call_.forward.stream;
    config.doing = "launching backward";
    launch_kernel(on_.driver, kernel, config, parameters...);
  }

  const LaunchScope& on_;
  KernelVariant variant_;
  const BackwardCall& call_;
};

}  // namespace tilewright::cuda
