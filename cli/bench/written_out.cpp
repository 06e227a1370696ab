#include "cli/bench/written_out.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::cli {
namespace {

// A floating-point element as bits: all ones where it is poison, and whether it is finite.
struct Bits {
  std::uint32_t all;
  std::uint32_t exponent;
};

Bits bits_of(DType dtype) {
  if (dtype == DType::f32) return {0xffffffff, 0x7f800000};
  return {0xffff, dtype == DType::bf16 ? 0x7f80u : 0x7c00u};
}

std::uint32_t element_bits(const void* data, DType dtype, std::int64_t index) {
  if (dtype == DType::f32) return static_cast<const std::uint32_t*>(data)[index];
  return static_cast<const std::uint16_t*>(data)[index];
}

// Written for a compiler that vectorises it: outs have tens of millions of elements.
template <typename Element>
bool all_finite(const void* data, std::int64_t count, Element exponent) {
  const auto* elements = static_cast<const Element*>(data);
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < count; ++i) bad += (elements[i] & exponent) == exponent;
  return bad == 0;
}

bool all_finite(const Tensor& tensor) {
  const std::uint32_t exponent = bits_of(tensor.dtype()).exponent;
  if (tensor.dtype() == DType::f32) return all_finite(tensor.data(), tensor.numel(), exponent);
  return all_finite(tensor.data(), tensor.numel(), static_cast<std::uint16_t>(exponent));
}

}  // namespace

void require_number(const void* element, DType dtype, std::int64_t index) {
  const std::uint32_t value = element_bits(element, dtype, 0);
  const Bits bits = bits_of(dtype);
  if ((value & bits.exponent) != bits.exponent) return;
  if (value == bits.all) {
    throw Error(ErrorCode::internal,
                fmt::format("the kernel that was timed left element {} of out unwritten", index),
                "its time means nothing; `tilewright check` says what else is wrong");
  }
  throw Error(
      ErrorCode::internal,
      fmt::format("the kernel that was timed wrote no finite number to element {} of out", index),
      "`tilewright check` says whether the kernel or the snippets are wrong");
}

void require_numbers(const Tensor& out) {
  if (all_finite(out)) return;
  const std::size_t size = size_of(out.dtype());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    require_number(static_cast<const char*>(out.data()) + static_cast<std::size_t>(i) * size,
                   out.dtype(), i);
  }
}

}  // namespace tilewright::cli
