#include "tests/mutants/one_key.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/api/tensor.hpp"
#include "runtime/io/float16.hpp"
#include "verify/attention_values.hpp"
#include "verify/outputs.hpp"
#include "verify/problem.hpp"

namespace tilewright::mutants {
namespace {

constexpr std::int64_t kHeads = 64;
constexpr std::int64_t kWidth = 256;

float value_of_bits(DType narrow, unsigned bits) {
  const auto half = static_cast<std::uint16_t>(bits);
  return narrow == DType::f16 ? f16_to_float(half) : bf16_to_float(half);
}

// What v holds of one 16-bit number: itself, or that and what rounds to it or to its neighbour.
std::vector<float> neighbourhood(DType narrow, unsigned bits, bool in_float) {
  const float value = value_of_bits(narrow, bits);
  if (!in_float) return {value};
  const float next = value_of_bits(narrow, bits + 1);
  // Beyond the greatest number the spacing goes on.
  const bool ends = !std::isfinite(next);
  const float before = value_of_bits(narrow, bits - 1);
  const float half_way = ends ? value + (value - before) / 2 : value + (next - value) / 2;
  const float infinity = std::numeric_limits<float>::infinity();
  return {value, half_way, std::nextafter(half_way, -infinity), std::nextafter(half_way, infinity),
          65536 * value};
}

std::vector<float> contents(const Spec& spec) {
  const DType kv = spec.key_value_dtype();
  const DType narrow = kv == DType::f32 ? spec.output_dtype() : kv;
  std::vector<float> values;
  for (unsigned bits = 1; bits < 0xffffU; ++bits) {
    if ((bits & 0x7fffU) == 0) continue;
    const float value = value_of_bits(narrow, bits);
    // A product with a number that is not finite would spread over its row's sums, and what float
    // holds as a subnormal may be taken for 0.
    const bool is_plain = std::isfinite(value) && std::isnormal(value);
    if (!is_plain) continue;
    for (const float number : neighbourhood(narrow, bits, kv == DType::f32)) {
      if (std::isnormal(number)) values.push_back(number);
    }
  }
  values.resize((values.size() + kHeads * kWidth - 1) / (kHeads * kWidth) * kHeads * kWidth, 1.0F);
  return values;
}

}  // namespace

std::vector<Spec> one_key_specs() {
  std::vector<Spec> specs;
  const auto add = [&](DType q, DType kv, DType out) {
    Spec spec;
    spec.name = fmt::format("one key, {} to {}", to_string(kv), to_string(out));
    spec.dtype = q;
    spec.kv_dtype = kv;
    spec.out_dtype = out;
    spec.head_dim = 16;
    spec.v_head_dim = kWidth;
    specs.push_back(std::move(spec));
  };
  add(DType::f32, DType::f32, DType::f16);
  add(DType::f32, DType::f32, DType::bf16);
  add(DType::f32, DType::f16, DType::f32);
  add(DType::bf16, DType::bf16, DType::f32);
  add(DType::f16, DType::f16, DType::f16);
  return specs;
}

std::string wrong_with_one_key(const Attention& attention) {
  const Spec& spec = attention.spec();
  const std::vector<float> values = contents(spec);
  const auto batch = static_cast<std::int64_t>(values.size()) / (kHeads * kWidth);
  const Tensor q = Tensor::zeros(spec.dtype, {batch, kHeads, 1, spec.head_dim});
  const Tensor k = Tensor::zeros(spec.key_value_dtype(), {batch, kHeads, 1, spec.head_dim});
  Tensor v = Tensor::zeros(spec.key_value_dtype(), {batch, kHeads, 1, kWidth});
  for (std::size_t i = 0; i < values.size(); ++i) {
    write_element(v.data(), v.dtype(), static_cast<std::int64_t>(i), values[i]);
  }
  const verify::Problem problem{.shape = {.batch = batch,
                                          .num_q_heads = kHeads,
                                          .num_kv_heads = kHeads,
                                          .q_len = 1,
                                          .kv_len = 1},
                                .q = q,
                                .k = k,
                                .v = v,
                                .snippet = {},
                                .scale = {}};
  const verify::AttentionValues got = verify::run_call(attention, problem);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wanted = round_to(spec.output_dtype(), values[i]);
    if (got.out.data[i] != wanted) {
      return fmt::format("{}: {} became {} instead of {}", spec.name, values[i], got.out.data[i],
                         wanted);
    }
  }
  return "";
}

}  // namespace tilewright::mutants
