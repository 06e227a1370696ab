#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"

// Specs whose outputs name weights, for tests on any device whose memory is the host's.

namespace tilewright::weights {

inline Spec spec_of(const std::string& fields) {
  return spec_from_json(
      R"({"head_dim": 32, "outputs": ["out", "lse", "weights"], "block": [64, 64], "buffers": {
          "of_h": {"dtype": "f32", "shape": ["num_q_heads"], "range": [-2, 2]},
          "of_row": {"dtype": "f32", "shape": [null], "range": [0.25, 2]}}, )" +
          fields + "}",
      "weights");
}

inline verify::Report report_of(const Spec& spec, AttentionOptions options, Shape shape) {
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  return verify::check(spec, inputs.problem(), {.attention = std::move(options)});
}

inline void check_dense(
    const Spec& spec, const Device& device,
    Shape shape = {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 75, .kv_len = 147}) {
  const verify::Report report = report_of(spec, {.device = device}, shape);
  for (const std::string& reason : report.reasons()) UNSCOPED_INFO(reason);
  CHECK(report.ok);
  CHECK(report.verdict.weights_bound > 0);  // they were judged
}

/// Rows of q and k that a tile pads: kernels of their own read them.
inline void check_padded(Spec spec, const Device& device) {
  spec.head_dim = 20;
  spec.v_head_dim = 13;
  check_dense(spec, device);
}

/// Plain, masked with rows and blocks of rows that keep nothing, scaled, and with a sink.
inline std::vector<std::string> dense_fields() {
  return {R"("v_head_dim": 48)", R"x("mask_mod": "q_idx >= kv_idx && kv_idx % 3 != 1")x",
          R"x("score_mod": "5 * tanh(score / 5) + of_h[h] * (kv_idx - q_idx)", "layout": "bshd",
              "mask_mod": "kv_idx > q_idx + 80")x",
          R"x("scale": -0.7, "sink": "of_h[h] + 9")x",
          R"x("q_scale": "of_row[q_idx]", "k_scale": "-0.5")x"};
}

}  // namespace tilewright::weights
