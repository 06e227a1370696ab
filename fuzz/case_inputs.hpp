#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "../verify/guarded_tensor.hpp"
#include "../verify/problem.hpp"
#include "../verify/random_inputs.hpp"
#include "case.hpp"
#include "case_parts.hpp"

namespace tilewright::verify::fuzz {

/// The contents of a case's call, dense and without NaN but for rows of no sequence; its scalars
/// are those that are read.
/// @throws Error as random_inputs
Inputs dense_inputs(const FuzzCase& fuzz_case);

/// The inputs of a case's call, each in guarded memory, placed as the case says.
class CaseInputs {
 public:
  /// @throws Error with code tensor for a shape that no kernel can run, with code memory
  explicit CaseInputs(const FuzzCase& fuzz_case);

  /// Views; the inputs must outlive it.
  const Problem& problem() const { return problem_; }

  /// Fills each row of k that no query of its heads, batches and sequences keeps with NaN.
  void plant_nan_in_dropped(const CaseParts& parts);

  /// A number that changes where any input does, its guards included.
  std::uint64_t fingerprint() const;

 private:
  class KeyRows;

  TensorView place(const TensorView& source, const Placement& placement);

  Layout kv_layout_;
  Problem problem_;
  std::deque<GuardedTensor> tensors_;
  std::optional<SequenceMemory> sequences_;
};

}  // namespace tilewright::verify::fuzz
