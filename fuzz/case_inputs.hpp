#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "../verify/guarded_tensor.hpp"
#include "../verify/problem.hpp"
#include "../verify/random_inputs.hpp"
#include "case.hpp"

namespace tilewright::verify::fuzz {

/// The contents of a case's call, dense and without NaN; its scalars are those that are read.
/// @throws Error as random_inputs
Inputs dense_inputs(const FuzzCase& fuzz_case);

/// The inputs of a case's call, each in guarded memory, placed as the case says.
class CaseInputs {
 public:
  /// @throws Error with code tensor for a shape that no kernel can run, with code memory
  explicit CaseInputs(const FuzzCase& fuzz_case);

  /// Views; the inputs must outlive it.
  const Problem& problem() const { return problem_; }

  /// Fills each row of k that no query of its heads and batches keeps with NaN.
  /// @param keep whether an element of the score matrices is kept
  void plant_nan_in_dropped(const std::function<bool(std::int64_t b, std::int64_t h,
                                                     std::int64_t row, std::int64_t column)>& keep);

  /// A number that changes where any input does, its guards included.
  std::uint64_t fingerprint() const;

 private:
  TensorView place(const TensorView& source, const Placement& placement);

  Layout kv_layout_;
  Problem problem_;
  std::deque<GuardedTensor> tensors_;
};

}  // namespace tilewright::verify::fuzz
