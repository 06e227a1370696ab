#pragma once

#include <cstdint>

namespace emulated {

/// A tensor map as this emulator's driver makes it, in the place of a CUtensorMap: elements of 16
/// bits in four dimensions, fastest first.
struct TensorMap {
  static constexpr std::uint32_t kMagic = 0x70616d74;
  std::uint32_t magic;
  std::uint32_t box[2];  // columns, rows
  unsigned char* base;
  std::uint64_t extents[4];
  std::uint64_t strides[3];  // bytes, of all dimensions but the first

  bool is_made() const { return magic == kMagic; }

  /// The element's place, or null where it is outside of the tensor.
  unsigned char* at(std::int64_t column, std::int64_t row, std::int64_t h, std::int64_t b) const {
    const auto is_inside = [](std::int64_t i, std::uint64_t extent) {
      return i >= 0 && static_cast<std::uint64_t>(i) < extent;
    };
    if (!is_inside(column, extents[0]) || !is_inside(row, extents[1]) ||
        !is_inside(h, extents[2]) || !is_inside(b, extents[3])) {
      return nullptr;
    }
    return base + 2 * column + static_cast<std::int64_t>(strides[0]) * row +
           static_cast<std::int64_t>(strides[1]) * h + static_cast<std::int64_t>(strides[2]) * b;
  }
};
static_assert(sizeof(TensorMap) <= 128);

}  // namespace emulated
