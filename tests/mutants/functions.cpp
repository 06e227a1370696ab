#include "tests/mutants/functions.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/api/tensor.hpp"
#include "runtime/io/float16.hpp"
#include "verify/outputs.hpp"
#include "verify/problem.hpp"

namespace tilewright::mutants {
namespace {

struct Function {
  const char* name;
  double (*exact)(double);
  double ulp;       // greatest error of docs/math.md, a little more
  double absolute;  // likewise
  double least, greatest;
};

constexpr std::array<Function, 12> kFunctions = {
    {{"exp", [](double x) { return std::exp(x); }, 1.1, 0, -200, 88},
     {"exp2", [](double x) { return std::exp2(x); }, 1.05, 0, -300, 127},
     {"log", [](double x) { return std::log(x); }, 1.0, 0, 0, 1e5},
     {"log2", [](double x) { return std::log2(x); }, 1.8, 0, 0, 1e5},
     {"tanh", [](double x) { return std::tanh(x); }, 2.7, 0, -30, 30},
     {"sin", [](double x) { return std::sin(x); }, 0, 9e-8, -1e5, 1e5},
     {"cos", [](double x) { return std::cos(x); }, 0, 9e-8, -1e5, 1e5},
     {"tan", [](double x) { return std::tan(x); }, 3.0, 0, -1.5, 1.5},
     {"erf", [](double x) { return std::erf(x); }, 1.2, 0, -4.5, 4.5},
     {"erfc", [](double x) { return std::erfc(x); }, 4.7, 0, -4.5, 9},
     {"log1p", [](double x) { return std::log1p(x); }, 1.7, 0, -0.9999, 1e5},
     {"expm1", [](double x) { return std::expm1(x); }, 1.6, 0, -30, 88}}};

constexpr std::int64_t kRows = 2048;

// Dense near 0, where the functions bend, and spread up to both ends; the ends themselves.
float argument(const Function& function, std::int64_t row) {
  const double t = static_cast<double>(row) / (kRows - 1);
  const double squeezed = row % 2 == 0 ? t : t * t * t * t;
  const double middle = function.least < 0 ? 0 : function.least;
  const double end = row % 4 < 2 || function.least >= 0 ? function.greatest : function.least;
  return static_cast<float>(middle + (end - middle) * squeezed);
}

}  // namespace

Spec functions_spec() {
  Spec spec;
  spec.name = "functions";
  spec.dtype = DType::f32;
  spec.head_dim = 16;
  spec.score_mod = "const float x = of_row(h, q_idx);\n";
  for (std::size_t i = 0; i + 1 < kFunctions.size(); ++i) {
    spec.score_mod += fmt::format("if (h == {}) return {}(x);\n", i, kFunctions[i].name);
  }
  spec.score_mod += fmt::format("return {}(x);", kFunctions.back().name);
  spec.buffers["of_row"] = {.dtype = DType::f32, .shape = {NamedDim::num_q_heads, NamedDim::q_len}};
  spec.outputs.lse = true;
  return spec;
}

std::string wrong_functions(const Attention& attention) {
  const auto heads = static_cast<std::int64_t>(kFunctions.size());
  const Tensor q = Tensor::zeros(DType::f32, {1, heads, kRows, 16});
  const Tensor k = Tensor::zeros(DType::f32, {1, heads, 1, 16});
  Tensor of_row = Tensor::zeros(DType::f32, {heads, kRows});
  for (std::int64_t i = 0; i < of_row.numel(); ++i) {
    const Function& function = kFunctions[static_cast<std::size_t>(i / kRows)];
    write_element(of_row.data(), DType::f32, i, argument(function, i % kRows));
  }
  verify::Problem problem{.shape = {.batch = 1,
                                    .num_q_heads = heads,
                                    .num_kv_heads = heads,
                                    .q_len = kRows,
                                    .kv_len = 1},
                          .q = q,
                          .k = k,
                          .v = k,
                          .snippet = {},
                          .scale = {}};
  problem.snippet.buffers.emplace("of_row", of_row);
  const std::vector<double> got = verify::run_call(attention, problem).lse.data;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Function& function = kFunctions[i / kRows];
    const double x = read_element(of_row.data(), DType::f32, static_cast<std::int64_t>(i));
    const double wanted = function.exact(x);
    const double bound = function.ulp * ulp_at(DType::f32, wanted) + function.absolute;
    const double rounded = round_to(DType::f32, wanted);
    const bool same = got[i] == rounded || std::abs(got[i] - wanted) <= bound;
    if (same) continue;
    return fmt::format("{}({}) became {} instead of {}", function.name, x, got[i], wanted);
  }
  return "";
}

}  // namespace tilewright::mutants
