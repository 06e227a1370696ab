#pragma once

#include "../api/block_mask.hpp"

namespace tilewright {

/// Refuses a fingerprint that no mask can have: one that a program filled in itself may hold any
/// number.
/// @throws Error with code tensor as validate(Shape), or for a negative count; with code block_mask
///         for a block side below 1, or other numbers of scalars and of values
void validate(const MaskFingerprint& fingerprint);

}  // namespace tilewright
