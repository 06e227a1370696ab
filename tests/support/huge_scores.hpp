#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "../../runtime/io/float16.hpp"
#include "../../verify/check.hpp"
#include "../../verify/random_inputs.hpp"

namespace tilewright::test {

/// A spec whose scores come near the limits of their type, and the scalars of its calls.
struct HugeScores {
  Spec spec;
  std::vector<std::map<std::string, double>> calls = {{}};
};

inline double greatest_of(DType dtype) {
  return dtype == DType::f16 ? 65504.0 : dtype == DType::bf16 ? 0x1.fep127 : 0x1.fffffep127;
}

/// Rows as padding masks have them: the type's least number everywhere, in half of the columns, in
/// turns with -infinity, and after a whole tile of usual numbers; the greatest number; and a usual
/// row.
inline void fill_padding(Tensor& m, DType dtype, std::int64_t rows, std::int64_t columns) {
  const double greatest = greatest_of(dtype);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      double value = 0;
      if (row % 6 == 0 || (row % 6 == 1 && column % 2 == 0)) value = -greatest;
      if (row % 6 == 2)
        value = column % 3 == 0 ? -greatest : -std::numeric_limits<double>::infinity();
      if (row % 6 == 3) value = column < columns / 2 ? -greatest : 0.25;
      if (row % 6 == 4) value = column % 5 == 0 ? greatest : -greatest;
      write_element(m.data(), dtype, row * columns + column, value);
    }
  }
}

/// `score + m(q_idx, kv_idx)`, scaled scores and shifts: everything that is added goes by one
/// kernel. The factor is a sum, which no kernel leaves to the launch.
inline HugeScores padded_scores(DType dtype, DType mask_dtype, const std::string& mask_mod = "") {
  Spec spec{.dtype = dtype,
            .head_dim = 64,
            .score_mod = "score * (factor + 0 * b) + shift + m(q_idx, kv_idx)",
            .mask_mod = mask_mod,
            .buffers = {{"m", {.dtype = mask_dtype, .shape = {NamedDim::q_len, NamedDim::kv_len}}}},
            .scalars = {{"factor", {.dtype = f32}}, {"shift", {.dtype = f32}}},
            .outputs = {.lse = true}};
  return {spec,
          {{{"factor", 1}, {"shift", 0}, {"padded", 1}},
           {{"factor", 1}, {"shift", -0x1.c363cap127}},
           {{"factor", 1}, {"shift", 0x1.c363cap127}},
           {{"factor", 0x1.2ced32p126}, {"shift", 0}}}};
}

/// ALiBi with slopes up to `greatest`.
inline HugeScores steep_slopes(DType dtype, const std::string& mask_mod = "",
                               double greatest = 0x1.fffffep127) {
  return {{.dtype = dtype,
           .head_dim = 64,
           .score_mod = "score + slope * (kv_idx - q_idx)",
           .mask_mod = mask_mod,
           .scalars = {{"slope", {.dtype = f32}}},
           .outputs = {.lse = true}},
          {{{"slope", 0.25}},
           {{"slope", 64}},
           {{"slope", -0x1.8p90}},
           {{"slope", greatest}},
           {{"slope", -greatest}}}};
}

/// A number and a scalar times the result of a function, which kernels for Hopper leave to the
/// exponent.
inline HugeScores folded_factors(DType dtype) {
  return {{.dtype = dtype,
           .head_dim = 64,
           .score_mod = "100 * gain * fabs(score * (factor + 0 * b))",
           .scalars = {{"factor", {.dtype = f32}}, {"gain", {.dtype = f32}}},
           .outputs = {.lse = true}},
          {{{"factor", 1}, {"gain", 1000}},
           {{"factor", 0x1p109}, {"gain", 1000}},
           {{"factor", 0x1p112}, {"gain", 1000}},
           {{"factor", 0x1p120}, {"gain", 0x1p-10}}}};
}

/// A softcap whose cap is a scalar, which kernels for Hopper leave to the launch if they can.
inline HugeScores softcaps(DType dtype, const std::string& mask_mod = "") {
  Spec spec{.dtype = dtype,
            .head_dim = 64,
            .score_mod = "cap * tanh(score / cap)",
            .mask_mod = mask_mod,
            .scalars = {{"cap", {.dtype = f32, .default_value = 50}}},
            .outputs = {.lse = true}};
  HugeScores caps{spec, {}};
  const double inf = std::numeric_limits<double>::infinity();
  for (const double cap : {50.0, 0.5, 0x1p-20, 0x1p20, -3.0, 1e-30, 1e30, 0.0, inf}) {
    caps.calls.push_back({{"cap", cap}});
  }
  return caps;
}

/// Sentences about calls whose result differs from the reference's; empty if all are right.
inline std::vector<std::string> findings(const HugeScores& huge, const Device& device) {
  verify::CheckOptions options;
  options.attention.device = device;
  options.check_undefined = false;
  const verify::Checker checker(huge.spec, options);
  std::vector<std::string> found;
  const Shape shape{.batch = 1, .num_q_heads = 2, .num_kv_heads = 1, .q_len = 150, .kv_len = 300};
  for (const auto& scalars : huge.calls) {
    verify::Inputs inputs = verify::random_inputs(huge.spec, shape, 3);
    for (auto& [name, tensor] : inputs.buffers) {
      const DType dtype = huge.spec.buffers.at(name).dtype;
      fill_padding(tensor, dtype, shape.q_len, shape.kv_len);
      if (scalars.contains("padded")) continue;
      for (std::int64_t i = 0; i < shape.q_len * shape.kv_len; ++i) {
        write_element(tensor.data(), dtype, i, 0);
      }
    }
    for (auto& [name, value] : inputs.scalars) value = scalars.at(name);
    verify::Problem problem = inputs.problem();
    problem.scale = 0.03;  // scores below 2, so that 1e38 times one is finite
    std::string call;
    for (const auto& [name, value] : scalars) call += name + " " + std::to_string(value) + " ";
    for (const std::string& reason : checker.check(problem).reasons()) {
      found.push_back(huge.spec.score_mod + ", " + call + ": " + reason);
    }
  }
  return found;
}

}  // namespace tilewright::test
