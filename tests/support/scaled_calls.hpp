#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "generator/spec/spec.hpp"
#include "generator/spec/spec_json.hpp"
#include "runtime/api/device.hpp"
#include "runtime/api/tensor.hpp"
#include "tests/support/catch.hpp"
#include "verify/check.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

// Specs with scales and sinks and their calls, for tests on any device whose memory is the host's.

namespace tilewright::scaled_calls {

/// What scales may name, and buffers for them: `fields` are the spec's further ones.
inline Spec scaled_spec(const std::string& fields) {
  return spec_from_json(
      R"({"dtype": "f16", "head_dim": 32, "outputs": ["out", "lse"], "buffers": {
          "of_h": {"dtype": "f32", "shape": ["num_q_heads"], "range": [-2, 2]},
          "of_kv": {"dtype": "f32", "shape": ["batch", "num_kv_heads"], "range": [0.25, 2]},
          "of_row": {"dtype": "f32", "shape": [null], "range": [0.25, 2]}}, )" +
          fields + "}",
      "scaled");
}

inline void require_ok(const verify::Report& report) {
  for (const std::string& reason : report.reasons()) UNSCOPED_INFO(reason);
  CHECK(report.ok);
}

inline void check_dense(const Spec& spec, const Device& device) {
  const Shape shape = {.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 19, .kv_len = 75};
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
  require_ok(verify::check(spec, inputs.problem(), {.attention = {.device = device}}));
}

inline void check_sequences(const Spec& spec, const Device& device) {
  verify::PackedLengths lengths = {.num_q_heads = 4, .num_kv_heads = 2};
  lengths.sequences = {{1, 132}, {5, 18}, {40, 73}, {3, 0}, {0, 9}, {6, 4}};
  if (spec.kv_new) lengths.sequences = {{1, 132}, {5, 18}, {40, 73}, {0, 9}, {6, 6}};
  lengths.pages.page_size = spec.is_paged() ? 16 : 0;
  lengths.has_new_rows = spec.kv_new;
  const verify::PackedInputs inputs = verify::random_packed_inputs(spec, lengths, 7);
  require_ok(verify::check(spec, inputs.problem(), {.attention = {.device = device}}));
}

/// Each kind of scale in each layout, compared with the reference.
inline void check_layouts(const Device& device) {
  struct Scales {
    const char* text;
    bool only_packed = false;
  };
  const auto scales =
      GENERATE(Scales{R"x("sink": "of_h[h]")x"},
               Scales{R"x("q_scale": "of_h[h]", "k_scale": "of_kv(b, h_kv)", "v_scale": "-0.5")x"},
               Scales{R"x("k_scale": "-1.5", "sink": "of_row[q_idx] - 1")x"},
               Scales{R"x("score_mod": "score * of_h[h] + 1", "q_scale": "of_row[q_idx]",
                 "k_scale": "of_row[kv_idx + 3]", "v_scale": "of_row[kv_idx]", "sink": "2")x"},
               Scales{R"x("q_scale": "of_row[q_token % 11]", "k_scale": "of_row[kv_token % 17]",
                 "v_scale": "of_row[kv_token % 13]", "sink": "of_row[q_token]")x",
                      true});
  const std::string layout = GENERATE(
      R"("layout": "bshd")", R"("layout": "packed")", R"("layout": "packed", "kv_layout": "paged")",
      R"("layout": "packed", "kv_layout": "paged", "kv_new": true)");
  const bool is_dense = layout.find("packed") == std::string::npos;
  if (is_dense && scales.only_packed) return;
  const std::string mask = GENERATE(R"("mask_mod": "q_idx >= kv_idx && q_idx % 5 != 3", )", "");
  CAPTURE(scales.text, layout, mask);
  const Spec spec = scaled_spec(mask + layout + ", " + scales.text);
  is_dense ? check_dense(spec, device) : check_sequences(spec, device);
}

/// float32, whose scores and weights are not rounded.
inline void check_float32(const Device& device) {
  Spec spec = scaled_spec(
      R"x("mask_mod": "q_idx >= kv_idx - 40", "q_scale": "of_h[h]", "k_scale": "of_row[kv_idx]",
          "v_scale": "of_kv(b, h_kv)", "sink": "of_h[h] * 2")x");
  spec.dtype = f32;
  check_dense(spec, device);
}

/// Sinks and scales that are no usual numbers: what out and lse are then.
inline void check_exact_answers(const Device& device) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  // Row 1 keeps nothing, row 2 only -inf.
  Spec spec = scaled_spec(
      R"("score_mod": "q_idx == 2 ? -INFINITY : score", "mask_mod": "q_idx != 1",
         "v_scale": "of_row[kv_idx]", "sink": "of_h[h]")");
  spec.dtype = f32;
  const Shape shape = {.batch = 1, .num_q_heads = 4, .num_kv_heads = 1, .q_len = 3, .kv_len = 20};
  verify::Inputs inputs = verify::random_inputs(spec, shape, 3);
  const std::vector<float> sinks = {0.75f, -kInfinity, kInfinity, kNan};
  auto* const of_h = static_cast<float*>(inputs.buffers.at("of_h").data());
  for (std::size_t h = 0; h < sinks.size(); ++h) of_h[h] = sinks[h];
  // From kv_len on anything may stand.
  auto* const of_row = static_cast<float*>(inputs.buffers.at("of_row").data());
  for (std::int64_t i = shape.kv_len; i < inputs.buffers.at("of_row").numel(); ++i)
    of_row[i] = kNan;
  const verify::Problem problem = inputs.problem();
  require_ok(verify::check(spec, problem, {.attention = {.device = device}}));

  const Attention attention(spec, {.device = device});
  const Bindings bindings = attention.bind(problem.snippet);
  Tensor out = Tensor::zeros(f32, {1, 4, 3, 32}), lse = Tensor::zeros(f32, {1, 4, 3});
  const BlockMask mask = attention.block_mask(shape, bindings);
  attention.forward({.q = problem.q, .k = problem.k, .v = problem.v, .out = out, .lse = lse.view()},
                    mask, bindings);
  const auto* const o = static_cast<const float*>(out.data());
  const auto* const l = static_cast<const float*>(lse.data());
  const auto is_zero = [&](int h, int row) {
    bool zero = true;
    for (int i = 0; i < 32; ++i) zero = zero && o[(h * 3 + row) * 32 + i] == 0.0f;
    return zero;
  };
  for (const int row : {1, 2}) {
    CAPTURE(row);
    for (const int h : {0, 1, 2}) {
      CAPTURE(h);
      CHECK(is_zero(h, row));
      CHECK(l[h * 3 + row] == sinks[static_cast<std::size_t>(h)]);
    }
  }
  CHECK(is_zero(2, 0));
  CHECK(l[2 * 3] == kInfinity);
  CHECK_FALSE(is_zero(0, 0));
  CHECK(std::isfinite(o[0]));
  for (int row = 0; row < 3; ++row) {
    CHECK(std::isnan(l[3 * 3 + row]));
    CHECK(std::isnan(o[(3 * 3 + row) * 32]));
  }
}

}  // namespace tilewright::scaled_calls
