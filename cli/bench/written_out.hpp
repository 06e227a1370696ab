#pragma once

#include <cstdint>

#include "runtime/api/tensor.hpp"

namespace tilewright::cli {

/// The byte that out is filled with before a call: a NaN that no kernel computes.
inline constexpr unsigned char kPoison = 0xff;

/// @param element on the host
/// @param index that a message names
/// @throws Error with code internal where the element is still poisoned, or is not finite
void require_number(const void* element, DType dtype, std::int64_t index);

/// The same for every element.
void require_numbers(const Tensor& out);

}  // namespace tilewright::cli
