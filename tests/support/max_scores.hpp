#pragma once

#include <limits>
#include <string>
#include <vector>

#include "generator/spec/spec_json.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/outputs.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

// Specs whose outputs name max_scores, for tests on any device whose memory is the host's.

namespace tilewright::max_scores {

inline Spec spec_of(const std::string& fields) {
  return spec_from_json(
      R"({"head_dim": 32, "buffers": {
          "of_h": {"dtype": "f32", "shape": ["num_q_heads"], "range": [-2, 2]},
          "of_row": {"dtype": "f32", "shape": [null], "range": [0.25, 2]}}, )" +
          fields + "}",
      "max_scores");
}

inline void require_ok(const verify::Report& report) {
  for (const std::string& reason : report.reasons()) UNSCOPED_INFO(reason);
  CHECK(report.ok);
  CHECK(report.verdict.max_scores_bound > 0);  // they were judged
}

inline void check_dense(const Spec& spec, const Device& device) {
  const Shape shape = {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 75, .kv_len = 147};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  require_ok(verify::check(spec, inputs.problem(), {.attention = {.device = device}}));
}

/// A dense call with few rows of q, which a GPU's decode kernel splits over its columns.
inline void check_few_rows(const Spec& spec, const Device& device) {
  const Shape shape = {
      .batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 3, .kv_len = 700, .q_offset = 600};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  require_ok(
      verify::check(spec, inputs.problem(), {.attention = {.device = device, .decode = true}}));
}

/// Sequences for the decode kernel and for the other one, and some without rows or columns.
inline void check_sequences(const Spec& spec, const Device& device) {
  verify::PackedLengths lengths = {.num_q_heads = 4, .num_kv_heads = 2};
  lengths.sequences = {{1, 132}, {5, 18}, {40, 73}, {3, 0}, {0, 9}, {6, 4}};
  if (spec.kv_new) lengths.sequences = {{1, 132}, {5, 18}, {40, 73}, {0, 9}, {6, 6}};
  lengths.pages.page_size = spec.is_paged() ? 16 : 0;
  lengths.has_new_rows = spec.kv_new;
  const verify::PackedInputs inputs = verify::random_packed_inputs(spec, lengths, 7);
  require_ok(verify::check(spec, inputs.problem(), {.attention = {.device = device}}));
}

/// Fields of dense specs: plain, masked, and what kernels shorten.
inline std::vector<std::string> dense_fields() {
  return {
      R"("outputs": ["out", "max_scores"])",
      R"x("outputs": ["out", "lse", "max_scores"], "mask_mod": "q_idx >= kv_idx && kv_idx % 3 != 1")x",
      R"x("outputs": ["out", "max_scores"], "score_mod": "score + of_h[h] * (kv_idx - q_idx)")x",
      R"x("outputs": ["out", "max_scores"], "score_mod": "5 * tanh(score / 5)",
          "mask_mod": "kv_idx > q_idx + 80", "layout": "bshd")x",
      R"x("outputs": ["out", "lse", "max_scores"], "scale": -0.7, "sink": "of_h[h] + 9")x",
      R"x("outputs": ["out", "max_scores"], "q_scale": "of_row[q_idx]", "k_scale": "-0.5")x"};
}

/// Fields of packed and paged ones.
inline std::vector<std::string> sequence_fields() {
  return {
      R"x("layout": "packed", "outputs": ["out", "max_scores"], "mask_mod": "q_idx >= kv_idx")x",
      R"x("layout": "packed", "kv_layout": "paged", "outputs": ["out", "lse", "max_scores"],
          "score_mod": "score * of_h[h] + 1", "sink": "of_h[h]")x",
      R"x("layout": "packed", "kv_layout": "paged", "kv_new": true,
          "outputs": ["out", "max_scores"], "mask_mod": "q_idx >= kv_idx")x"};
}

}  // namespace tilewright::max_scores
