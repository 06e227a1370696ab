#pragma once

#include "c/tilewright.h"
#include "tilewright.hpp"

namespace tilewright::capi {

/// Where a call writes gradients of buffers and scalars.
/// @throws Error with code usage for a name that is null or given twice; with code tensor as
/// view_of
GradientBuffers gradients_of(const tw_backward_call& call, const Device& device);

}  // namespace tilewright::capi
