#pragma once

#include "launch_scope.hpp"

namespace tilewright::cuda {

/// Lists the tiles of a block mask in the stream's order. Waits once, for the number of tiles, and
/// where the caller gives a capacity not at all.
/// @param fingerprint its batch and heads say how many lists are made
/// @throws Error with code block_mask for more rows of tiles than a launch takes; device; memory
BlockMask build_block_mask(const LaunchScope& on, MaskFingerprint fingerprint, const Shape& shape,
                           const Bindings& bindings, const BlockMaskOptions& options);

/// Lists the tiles anew in the memory of a mask that was built with a capacity in this context.
/// Neither waits nor allocates.
/// @throws Error with code block_mask for a mask that was not, or whose tables have grown
void rebuild_block_mask(const LaunchScope& on, const BlockMask& mask, const Shape& shape,
                        const Bindings& bindings, tilewright::Stream stream);

}  // namespace tilewright::cuda
