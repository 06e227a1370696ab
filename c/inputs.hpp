#pragma once

#include <cstddef>

#include "c/tilewright.h"
#include "tilewright.hpp"

namespace tilewright::capi {

/// What a program binds.
/// @throws Error with code usage for a name that is null or given twice; with code tensor as
/// view_of
SnippetInputs inputs_of(const Device& device, const tw_buffer* buffers, std::size_t buffer_count,
                        const tw_scalar* scalars, std::size_t scalar_count);

}  // namespace tilewright::capi
