#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "tests/support/backward_of_call.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dropout.hpp"
#include "verify/fast_math.hpp"
#include "verify/gradients.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

// Gradients of calls with dropout, on any device whose memory is the host's.

namespace tilewright::dropout_calls {

/// Judges the gradients of a call. The spec names q, k, v and all buffers.
inline void check_gradients_of(const Spec& spec, const verify::Problem& problem,
                               const Device& device) {
  const Attention attention(spec, {.device = device});
  BackwardOfCall backward(attention, problem);
  backward.run();
  verify::GradientResults results = backward.results();
  results.out.reset();
  results.fast_math = verify::uses_fast_math(spec, device);
  const auto verdicts = verify::judge_gradients(spec, problem, results, {}, ThreadPool::shared());
  CHECK(verdicts.size() == 3 + problem.snippet.buffers.size());
  for (const auto& [name, verdict] : verdicts) {
    CAPTURE(name, verdict.error_max, verdict.bound_max, verdict.reasons);
    CHECK(verdict.ok);
  }
}

/// Dense and packed, with tiles that are skipped and gradients of buffers.
inline std::vector<std::string> gradient_fields() {
  return {R"x("dtype": "bf16", "dropout": "p", "gradients": ["q", "k", "v"])x",
          R"x("dtype": "f32", "dropout": "h == 1 ? 1 : 0.5f", "gradients": ["q", "k", "v"],
              "mask_mod": "(q_idx >= kv_idx || kv_idx > 130) && q_idx % 7 != 2")x",
          R"x("dtype": "f16", "dropout": "p * (h + 1) / num_q_heads", "sink": "h - 1",
              "score_mod": "5 * tanh(score / 5) * gain[h] + by_distance[kv_idx - q_idx + 80]",
              "mask_mod": "kv_idx <= q_idx + 40", "gradients": ["q", "k", "v", "gain", "by_distance"],
              "buffers": {"gain": {"dtype": "f32", "shape": ["num_q_heads"]},
                          "by_distance": {"dtype": "f32", "shape": [220]}})x",
          R"x("dtype": "bf16", "dropout": "p", "layout": "packed",
              "mask_mod": "q_idx >= kv_idx || (kv_idx > 60 && h != 2)",
              "gradients": ["q", "k", "v"])x",
          R"x("dtype": "f32", "dropout": "0.9f", "layout": "packed", "score_mod": "score * gain[h]",
              "gradients": ["q", "k", "v", "gain"],
              "buffers": {"gain": {"dtype": "f32", "shape": ["num_q_heads"]}})x"};
}

/// kv_offset: of dense calls
inline void check_gradients(const Device& device, const std::string& fields,
                            std::int64_t kv_offset = 4) {
  const Spec spec = spec_of(fields);
  if (spec.is_packed()) {
    verify::PackedLengths lengths = {.num_q_heads = 4, .num_kv_heads = 2};
    lengths.sequences = {{1, 43}, {50, 50}, {0, 9}, {35, 18}, {21, 70}};
    const verify::PackedInputs inputs = verify::random_packed_inputs(spec, lengths, 7);
    check_gradients_of(spec, inputs.problem(), device);
  } else {
    const Shape shape = {.batch = 2,
                         .num_q_heads = 4,
                         .num_kv_heads = 2,
                         .q_len = 75,
                         .kv_len = 147,
                         .q_offset = 5,
                         .kv_offset = kv_offset};
    const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
    check_gradients_of(spec, inputs.problem(), device);
  }
}

}  // namespace tilewright::dropout_calls
