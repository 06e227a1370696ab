#include "runtime/cuda/launch.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cuda {
namespace {

constexpr std::int64_t kMostGridBlocks = std::numeric_limits<std::int32_t>::max();

}  // namespace

void launch_addresses(const Driver& driver, const Kernel& kernel, const LaunchConfig& config,
                      void** parameters) {
  driver.check(driver.functions().launch(kernel.function, static_cast<unsigned>(config.blocks), 1,
                                         1, static_cast<unsigned>(config.threads), 1, 1,
                                         static_cast<unsigned>(config.shared_bytes),
                                         static_cast<Stream>(config.stream), parameters, nullptr),
               config.doing);
}

std::int64_t launchable(std::int64_t blocks) {
  if (blocks <= kMostGridBlocks) return blocks;
  throw Error(ErrorCode::tensor,
              fmt::format("the call needs {} blocks of threads; a launch takes at most {}", blocks,
                          kMostGridBlocks),
              "split the batch");
}

std::int64_t launchable_q_tiles(std::int64_t q_tiles) {
  if (q_tiles <= kMostGridBlocks) return q_tiles;
  throw Error(ErrorCode::tensor,
              fmt::format("the call has {} tiles of q, more than a launch takes", q_tiles),
              "split the batch");
}

}  // namespace tilewright::cuda
