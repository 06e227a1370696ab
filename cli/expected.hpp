#pragma once

#include <string>

#include "cli/inputs.hpp"
#include "generator/spec/spec.hpp"
#include "verify/attention_values.hpp"

namespace tilewright::cli {

/// Reads a result from elsewhere, to be judged: `out` in the dtype, layout and sizes that the call
/// gives, and `lse` (F32, [batch, num_q_heads, q_len]) where the file has it. q, k, v and the
/// spec's buffers may stand in the same file.
/// @throws Error with code file; with code tensor, naming the tensor that is missing, extra, or of
///         another dtype or size
verify::AttentionValues read_expected(const std::string& path, const Spec& spec,
                                      const CallInputs& inputs);

}  // namespace tilewright::cli
