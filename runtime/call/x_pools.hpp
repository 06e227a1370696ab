#pragma once

#include "tensor_role.hpp"

namespace tilewright {

/// Checks a pool of paged_x against its role, whose x is 16 bytes of k and 1 of v, and reads its
/// sizes off it.
/// @throws Error with code tensor
TensorSizes sizes_of_x_pool(const TensorRole& role, const TensorView& view);

/// @param view that sizes_of_x_pool took: k of rank 5, or v of rank 4
ResolvedTensor resolved_x_pool(const TensorView& view);

}  // namespace tilewright
