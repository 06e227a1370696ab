#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/inputs.hpp"
#include "generator/spec/spec.hpp"
#include "runtime/api/tensor.hpp"
#include "verify/attention_values.hpp"

namespace tilewright::cli {

/// A result from elsewhere, to be judged.
struct ExpectedResult {
  verify::AttentionValues values;
  Tensor out;                               ///< of values, as the file has it
  std::map<std::string, Tensor> gradients;  ///< by their names: "dq", "d_slopes"
  bool has_unread_dlse = false;  ///< the file holds dlse, which the inputs may have elsewhere
};

/// The tensors that a result of the spec may have: what `run` writes.
std::vector<std::string> result_names(const Spec& spec);

/// Reads `out` in the dtype, layout and sizes that the call gives, and `lse` (F32, [batch,
/// num_q_heads, q_len]), max_scores, weights and the spec's gradients where the file has them. The
/// call's inputs may stand in the same file.
/// @throws Error with code file; with code tensor, naming the tensor that is missing, extra, or of
///         another dtype or size
ExpectedResult read_expected(const std::string& path, const Spec& spec, const CallInputs& inputs);

}  // namespace tilewright::cli
