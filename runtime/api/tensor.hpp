#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "../../generator/spec/dtype.hpp"

namespace tilewright {

inline constexpr int kMaxRank = 5;

/// A tensor in the caller's memory. Like a span, it does not say who may write: a function says
/// which of its views it writes to, and only reads the others.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;                                     ///< 0 (one element) to 5
  std::array<std::int64_t, kMaxRank> shape = {};    ///< the first `rank` entries count
  std::array<std::int64_t, kMaxRank> strides = {};  ///< in elements; 0 broadcasts

  /// Dense and row-major: the last dimension has stride 1.
  /// @throws Error with code tensor: rank above 5, a negative extent, more than 2^63 - 1 bytes
  static TensorView contiguous(void* data, DType dtype, std::span<const std::int64_t> shape);
  static TensorView contiguous(void* data, DType dtype, std::initializer_list<std::int64_t> shape);
  /// For tensors that are only read.
  static TensorView contiguous(const void* data, DType dtype, std::span<const std::int64_t> shape);
  static TensorView contiguous(const void* data, DType dtype,
                               std::initializer_list<std::int64_t> shape);

  /// The first `rank` extents. A rank out of range is clamped to 0..5.
  std::span<const std::int64_t> extents() const {
    const int count = rank < 0 ? 0 : rank > kMaxRank ? kMaxRank : rank;
    return {shape.data(), static_cast<std::size_t>(count)};
  }
  /// Number of elements: the product of the extents, 1 for rank 0, at most 2^63 - 1.
  std::int64_t numel() const;
  /// Of the elements themselves, whatever the strides; at most 2^63 - 1.
  std::int64_t bytes() const;
  /// True if the elements lie one after another; strides of extents 1 do not matter.
  bool is_contiguous() const;
  /// True if both have the same rank and extents.
  bool has_shape_of(const TensorView& other) const;
  /// "f32 [2, 8, 127, 64]"
  std::string describe() const;
  /// Why it cannot be read, as the end of a sentence: "has no data". A rank, dtype or extent that
  /// is none, elements without data or at an address that does not suit them, sizes or distances
  /// that 64 bits do not count. Empty where nothing is wrong.
  std::string fault() const;
};

/// A dense row-major tensor that owns its memory, aligned to 64 bytes.
class Tensor {
 public:
  /// f32 of shape [0], without memory; so is a tensor that was moved from.
  Tensor() = default;
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;

  /// Memory is taken from the system when it is first written to.
  /// @throws Error with code tensor as TensorView::contiguous; with code memory
  static Tensor zeros(DType dtype, std::span<const std::int64_t> shape);
  static Tensor zeros(DType dtype, std::initializer_list<std::int64_t> shape);
  /// Copies elements of any strides.
  /// @throws Error with code tensor where the view has a fault(); with code memory
  static Tensor copy_of(const TensorView& view);

  DType dtype() const { return view_.dtype; }
  std::span<const std::int64_t> shape() const { return view_.extents(); }
  std::int64_t numel() const { return view_.numel(); }
  std::int64_t bytes() const { return view_.bytes(); }
  std::string describe() const { return view_.describe(); }

  void* data() { return view_.data; }
  const void* data() const { return view_.data; }
  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  TensorView view_{.rank = 1};
};

}  // namespace tilewright
