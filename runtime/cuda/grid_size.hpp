#pragma once

#include <cstdint>

#include "../../generator/kernel_source.hpp"
#include "../block_mask.hpp"

namespace tilewright::cuda {

/// Blocks of threads of a launch.
/// @param q_tiles  of all heads together
/// @param mask     that the kernel follows, or null
std::int64_t grid_size(const KernelLaunch& launch, std::int64_t q_tiles, const BlockMask* mask,
                       int multiprocessors);

}  // namespace tilewright::cuda
