#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../runtime/api/attention.hpp"
#include "../verify/gradients.hpp"
#include "../verify/guarded_tensor.hpp"
#include "../verify/problem.hpp"
#include "case.hpp"

namespace tilewright::verify::fuzz {

/// What the backward pass of a case's call reads in addition to its own tensors, and the memory
/// that it writes to, with red zones. dout and dlse are normal and NaN in rows of no sequence.
class CaseGradients {
 public:
  /// @param factor  dout and dlse are multiplied by it
  CaseGradients(const FuzzCase& fuzz_case, const Problem& problem, double factor = 1);

  /// Batch b of a dense call's dout and dlse becomes what batch from[b] was.
  void take_batches(const std::vector<std::int64_t>& from);

  /// @param forward  has lse
  BackwardTensors tensors(const ForwardTensors& forward) const;
  GradientBuffers buffers() const;
  /// For judge_gradients.
  GradientResults results() const;
  /// dq, dk, dv and d_NAME.
  const std::map<std::string, GuardedTensor>& written() const { return written_; }

  /// "dk was written to: 3 elements after its end", "dout was changed"; empty where nothing was.
  std::string damage() const;
  /// "row 17 of dq belongs to no sequence and was written to", of a packed call; else empty.
  std::string touched_row(const Problem& problem) const;

 private:
  void make(const std::string& name, DType dtype, const TensorView& like,
            const Placement& placement);

  GuardedTensor dout_;
  std::optional<GuardedTensor> dlse_;
  Tensor dout_before_, dlse_before_;
  std::map<std::string, GuardedTensor> written_;
};

}  // namespace tilewright::verify::fuzz
