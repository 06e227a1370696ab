#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

/// Element types of tensors, buffers and scalars.
enum class DType : std::uint8_t { f32, f16, bf16, i32, i64, u8, boolean };

// The names a user writes in C++: Spec{.dtype = tilewright::bf16}.
inline constexpr DType f32 = DType::f32;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;

inline constexpr std::array kAllDTypes = {f32, f16, bf16, i32, i64, u8, boolean};

/// Bytes of one element.
std::size_t size_of(DType dtype);

/// f32, f16 and bf16.
bool is_floating(DType dtype);

/// The name in a spec: "f32", "f16", "bf16", "i32", "i64", "u8", "bool".
std::string_view to_string(DType dtype);

/// The opposite of to_string; empty for any other text.
std::optional<DType> dtype_from_string(std::string_view name);

}  // namespace tilewright
