#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "../generator/spec/dtype.hpp"
#include "../runtime/api/tensor.hpp"

namespace tilewright::verify {

/// How a guarded tensor lies in its memory.
struct Placement {
  std::int64_t row_padding = 0;  ///< unused elements after each row of the last dimension
  std::int64_t offset = 0;       ///< elements by which it starts off a 64-byte boundary
};

/// A tensor inside memory that no kernel may write to or depend on: 4 KiB before it, 4 KiB after
/// it and the padding between its rows. All of that, and at first the elements too, holds a NaN
/// with a payload that no computation gives (for integers: 0x5a in every byte). So an element that
/// is never written is NaN, a read outside spreads NaN, and a write outside is found.
class GuardedTensor {
 public:
  static constexpr std::int64_t kGuardBytes = 4096;  ///< before and after the tensor

  GuardedTensor(DType dtype, std::span<const std::int64_t> shape, const Placement& placement = {});

  /// The same shape, dtype and elements as `source`, placed anew.
  static GuardedTensor copy_of(const TensorView& source, const Placement& placement = {});

  const TensorView& view() const { return view_; }

  /// Where something was written outside the tensor: "3 elements after its end". Empty if nowhere.
  std::optional<std::string> damage() const;

  /// True if every element with this index of a dimension holds what the tensor was made with.
  bool is_untouched(int dim, std::int64_t index) const;

 private:
  Tensor memory_;  // one-dimensional
  TensorView view_;
};

}  // namespace tilewright::verify
