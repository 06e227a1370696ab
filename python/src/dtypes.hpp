#pragma once

#include <optional>

#include <nanobind/ndarray.h>

#include "generator/spec/dtype.hpp"

namespace tilewright::py {

/// The hint of errors that refuse an array's dtype.
inline constexpr const char* kDTypeHint =
    "convert it to float32, float64, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8 to int64, "
    "uint8 to uint32 or bool";

/// Empty for a dtype that no tensor has.
std::optional<DType> dtype_of_dlpack(nanobind::dlpack::dtype dtype);

}  // namespace tilewright::py
