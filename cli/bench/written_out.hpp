#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/tensor.hpp"

namespace tilewright::cli {

/// The byte that out is filled with before a call: a NaN that no kernel computes.
inline constexpr unsigned char kPoison = 0xff;

/// A kernel of the spec wrote NaN or infinity. With code snippet where the spec has a snippet that
/// numbers come from; else with code internal, as inputs of a timing are finite.
/// @param element that holds it: "element 3 of out"
Error not_finite_error(const Spec& spec, std::string_view element);

/// @param element on the host
/// @param index that a message names
/// @throws Error with code internal where the element is still poisoned; not_finite_error
void require_number(const Spec& spec, const void* element, DType dtype, std::int64_t index);

/// The same for every element.
void require_numbers(const Spec& spec, const Tensor& out);

}  // namespace tilewright::cli
