#include "cli/bench/written_out.hpp"

#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace tilewright::cli {
namespace {

// A floating-point element as bits: all ones where it is poison, and those that are all set where
// it is not finite. f8e4m3 has no infinities, and a NaN where all bits but the sign are set.
struct Bits {
  std::uint32_t all;
  std::uint32_t not_finite;
};

Bits bits_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {0xffffffff, 0x7f800000};
    case DType::bf16:
      return {0xffff, 0x7f80};
    case DType::f16:
      return {0xffff, 0x7c00};
    case DType::f8e4m3:
      return {0xff, 0x7f};
    default:
      throw Error(ErrorCode::internal, "out has no dtype of numbers that are not finite");
  }
}

std::uint32_t element_bits(const void* data, DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return *static_cast<const std::uint8_t*>(data);
    case 2:
      return *static_cast<const std::uint16_t*>(data);
    default:
      return *static_cast<const std::uint32_t*>(data);
  }
}

// Written for a compiler that vectorises it: outs have tens of millions of elements.
template <typename Element>
bool all_finite(const Tensor& tensor) {
  const auto* elements = static_cast<const Element*>(tensor.data());
  const auto not_finite = static_cast<Element>(bits_of(tensor.dtype()).not_finite);
  std::int64_t bad = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) bad += (elements[i] & not_finite) == not_finite;
  return bad == 0;
}

bool are_finite(const Tensor& tensor) {
  switch (size_of(tensor.dtype())) {
    case 1:
      return all_finite<std::uint8_t>(tensor);
    case 2:
      return all_finite<std::uint16_t>(tensor);
    default:
      return all_finite<std::uint32_t>(tensor);
  }
}

}  // namespace

Error not_finite_error(const Spec& spec, std::string_view element) {
  const std::string message =
      fmt::format("the kernel that was timed wrote no finite number to {}", element);
  if (spec.score_mod.empty() && !spec.has_scales_or_sink()) {
    return {ErrorCode::internal, message, "`tilewright check` says what else is wrong"};
  }
  return {ErrorCode::snippet, message,
          fmt::format("{} may give NaN or infinity, and times of those mean nothing; `tilewright "
                      "check` says whether the kernel is wrong",
                      spec.score_mod.empty() ? "a scale or the sink" : "score_mod")};
}

void require_number(const Spec& spec, const void* element, DType dtype, std::int64_t index) {
  const std::uint32_t value = element_bits(element, dtype);
  const Bits bits = bits_of(dtype);
  if ((value & bits.not_finite) != bits.not_finite) return;
  if (value == bits.all) {
    throw Error(ErrorCode::internal,
                fmt::format("the kernel that was timed left element {} of out unwritten", index),
                "its time means nothing; `tilewright check` says what else is wrong");
  }
  throw not_finite_error(spec, fmt::format("element {} of out", index));
}

void require_numbers(const Spec& spec, const Tensor& out) {
  if (are_finite(out)) return;
  const std::size_t size = size_of(out.dtype());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    require_number(spec, static_cast<const char*>(out.data()) + static_cast<std::size_t>(i) * size,
                   out.dtype(), i);
  }
}

}  // namespace tilewright::cli
