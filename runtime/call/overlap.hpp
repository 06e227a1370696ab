#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "../api/tensor.hpp"

namespace tilewright {

/// Addresses of the bytes from a tensor's first to its last one, gaps between its elements
/// included.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  ///< one past the last

  bool meets(const ByteRange& other) const { return begin < other.end && other.begin < end; }
};

/// @param view without a fault(); a view without elements has an empty range
ByteRange byte_range(const TensorView& view);

/// Two different elements of one tensor that share bytes.
struct SharedElements {
  std::array<std::int64_t, kMaxRank> first = {};   ///< indices
  std::array<std::int64_t, kMaxRank> second = {};  ///< likewise
};

/// Finds two elements that share bytes; nothing where every element has its own bytes. Exact. Costs
/// a few nanoseconds where each stride is at least as long as what lies inside it, in any order of
/// the dimensions, and less than a millisecond for any other strides: those that it cannot decide
/// in that time it gives back as the dimensions that it was looking at.
/// @param view without a fault()
std::optional<SharedElements> find_shared_elements(const TensorView& view);

/// Whether an element of one tensor shares bytes with one of the other. Exact: tensors that
/// interleave, as q, k and v in one allocation do, do not overlap. Costs a nanosecond where the
/// byte ranges are apart, and less than a millisecond for any strides: what it cannot decide in
/// that time counts as an overlap.
/// @param a, b without a fault()
bool overlap(const TensorView& a, const TensorView& b);

/// Whether both name the same elements in the same order: data, extents, strides and the size of an
/// element are equal. Strides of extents 1 do not matter.
bool is_same_memory(const TensorView& a, const TensorView& b);

}  // namespace tilewright
