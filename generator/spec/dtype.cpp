#include "generator/spec/dtype.hpp"

namespace tilewright {

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 ||
         dtype == DType::f64 || is_float8(dtype);
}

bool is_wide_integer(DType dtype) {
  return dtype == DType::i64 || dtype == DType::u32;
}

DType gradient_dtype(DType buffer) {
  return buffer == DType::f64 ? DType::f32 : buffer;
}

bool is_float8(DType dtype) {
  return dtype == DType::f8e4m3 || dtype == DType::f8e5m2;
}

bool is_quantised(DType dtype) {
  return is_float8(dtype) || dtype == DType::i8;
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::boolean:
      return "bool";
    case DType::f8e4m3:
      return "f8e4m3";
    case DType::f8e5m2:
      return "f8e5m2";
    case DType::i8:
      return "i8";
    case DType::f64:
      return "f64";
    case DType::i16:
      return "i16";
    case DType::u16:
      return "u16";
    case DType::u32:
      return "u32";
  }
  return "";
}

std::optional<DType> dtype_from_string(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (to_string(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace tilewright
