#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

/// Element types of tensors, buffers and scalars.
/// f8e4m3 has no infinity: its greatest number is 448 (OCP's E4M3, float8_e4m3fn of PyTorch and
/// ml_dtypes). f8e5m2 is the upper half of an f16; its greatest finite number is 57344.
/// f64, i16, u16 and u32 are read by snippets alone.
enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  i32,
  i64,
  u8,
  boolean,
  f8e4m3,
  f8e5m2,
  i8,
  f64,
  i16,
  u16,
  u32,
};

// The names a user writes in C++: Spec{.dtype = tilewright::bf16}.
inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;
inline constexpr DType f8e4m3 = DType::f8e4m3;
inline constexpr DType f8e5m2 = DType::f8e5m2;
inline constexpr DType i8 = DType::i8;
inline constexpr DType f64 = DType::f64;
inline constexpr DType i16 = DType::i16;
inline constexpr DType u16 = DType::u16;
inline constexpr DType u32 = DType::u32;

inline constexpr std::array kAllDTypes = {f32,    f16,    bf16, i32, i64, u8,  boolean,
                                          f8e4m3, f8e5m2, i8,   f64, i16, u16, u32};

/// Bytes of one element; 0 if the number is no dtype. Inline, as each call asks some twenty times.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 4;
    case DType::f16:
      return 2;
    case DType::bf16:
      return 2;
    case DType::i32:
      return 4;
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
    case DType::boolean:
      return 1;
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::i8:
      return 1;
    case DType::f64:
      return 8;
    case DType::i16:
    case DType::u16:
      return 2;
    case DType::u32:
      return 4;
  }
  return 0;
}

/// f32, f16, bf16, f8e4m3, f8e5m2 and f64.
bool is_floating(DType dtype);

/// i64 and u32: integers that snippets read with 64 bits, others with 32.
bool is_wide_integer(DType dtype);

/// Of the gradient of a buffer: f32 of f64, as sums are f32; else the buffer's.
DType gradient_dtype(DType buffer);

/// f8e4m3 and f8e5m2.
bool is_float8(DType dtype);

/// f8e4m3, f8e5m2 and i8: elements of one byte that q, k, v or out may have. Their value is the
/// stored number times a scale.
bool is_quantised(DType dtype);

/// The name in a spec: "f32", "f16", "bf16", "i32", "i64", "u8", "bool", "f8e4m3",
/// "f8e5m2", "i8", "f64", "i16", "u16", "u32".
std::string_view to_string(DType dtype);

/// The opposite of to_string; empty for any other text.
std::optional<DType> dtype_from_string(std::string_view name);

}  // namespace tilewright
