#pragma once

#include <cstdint>

namespace emulated {

/// A tensor map as this emulator's driver makes it, in the place of a CUtensorMap: elements of 8 or
/// 16 bits in four or five dimensions, fastest first.
struct TensorMap {
  static constexpr std::uint32_t kMagic = 0x70616d74;
  std::uint32_t magic;
  std::uint32_t box[5];
  std::uint32_t rank;
  std::uint32_t element_bytes;
  unsigned char* base;
  std::uint64_t extents[5];
  std::uint64_t strides[4];  // bytes, of all dimensions but the first

  /// Rows of 128 bytes that a box has.
  unsigned box_rows() const {
    unsigned rows = 1;
    for (unsigned i = 1; i < rank; ++i) rows *= box[i];
    return rows;
  }

  bool is_made() const { return magic == kMagic; }

  /// The place of the element at `index`, which has `rank` numbers; null where it is outside of the
  /// tensor. Strides add up modulo 2^64.
  unsigned char* at(const std::int64_t* index) const {
    std::uint64_t offset = element_bytes * static_cast<std::uint64_t>(index[0]);
    for (unsigned i = 0; i < rank; ++i) {
      if (index[i] < 0 || static_cast<std::uint64_t>(index[i]) >= extents[i]) return nullptr;
      if (i > 0) offset += strides[i - 1] * static_cast<std::uint64_t>(index[i]);
    }
    return base + static_cast<std::int64_t>(offset);
  }
};
static_assert(sizeof(TensorMap) <= 128);

}  // namespace emulated
