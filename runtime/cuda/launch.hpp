#pragma once

#include <cstdint>

#include "../api/stream.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// How a kernel is launched: blocks and threads in one dimension.
struct LaunchConfig {
  std::int64_t blocks = 0;
  std::int64_t threads = 0;       ///< of a block
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
  tilewright::Stream stream = nullptr;
  const char* doing = "";  ///< for the error: "launching append"
};

/// @param parameters the addresses of the kernel's parameters, in its order. The driver reads as
/// many bytes as the kernel's parameter has: a kernel may take the first part of one.
/// @throws Error with code device
void launch_addresses(const Driver& driver, const Kernel& kernel, const LaunchConfig& config,
                      void** parameters);

/// Launches a kernel with its parameters in its order, each as templates/abi lays it out.
template <typename... Parameters>
void launch_kernel(const Driver& driver, const Kernel& kernel, const LaunchConfig& config,
                   Parameters&... parameters) {
  void* addresses[] = {&parameters...};
  launch_addresses(driver, kernel, config, addresses);
}

/// @throws Error with code tensor for more blocks of threads than a launch takes
std::int64_t launchable(std::int64_t blocks);

/// The same of q tiles.
std::int64_t launchable_q_tiles(std::int64_t q_tiles);

}  // namespace tilewright::cuda
