#include "verify/gradients.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "verify/random.hpp"
#include "verify/random_inputs.hpp"

namespace {

using namespace tilewright;
using verify::GradientVerdict;

// Of dout.
struct OddElement {
  std::int64_t at;
  double value;
};

// A call's gradients, computed by the kernel.
struct Call {
  explicit Call(const Spec& given, const verify::RandomOptions& options = {},
                std::int64_t q_len = 37, std::int64_t kv_len = 50,
                std::optional<OddElement> odd = {})
      : spec(given),
        shape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = q_len, .kv_len = kv_len},
        inputs(verify::random_inputs(given, shape, 3, options)) {
    const Attention attention(spec, {.device = Device::cpu()});
    const verify::Problem problem = inputs.problem();
    const auto like = [](const TensorView& view) {
      return Tensor::zeros(view.dtype, {view.extents().begin(), view.extents().end()});
    };
    Tensor out = like(problem.q), lse = Tensor::zeros(f32, {2, 4, q_len});
    dout = like(problem.q);
    verify::Random random(1, "dout");
    for (std::int64_t i = 0; i < dout.numel(); ++i) {
      write_element(dout.data(), dout.dtype(), i, random.normal());
    }
    if (odd) write_element(dout.data(), dout.dtype(), odd->at, odd->value);
    tensors.emplace("dq", like(problem.q));
    tensors.emplace("dk", like(problem.k));
    tensors.emplace("dv", like(problem.v));
    GradientBuffers buffers;
    for (const auto& [name, view] : problem.snippet.buffers) {
      tensors.emplace("d_" + name, like(view));
      buffers.emplace(name, tensors.at("d_" + name));
    }
    const Bindings bindings = attention.bind(problem.snippet);
    const BlockMask mask = attention.block_mask(shape, bindings, {.transposed = true});
    attention.forward({.q = problem.q, .k = problem.k, .v = problem.v, .out = out, .lse = lse},
                      mask, bindings);
    attention.backward({.q = problem.q,
                        .k = problem.k,
                        .v = problem.v,
                        .out = out,
                        .lse = lse,
                        .dout = dout,
                        .dq = tensors.at("dq"),
                        .dk = tensors.at("dk"),
                        .dv = tensors.at("dv")},
                       mask, bindings, buffers);
  }

  std::map<std::string, GradientVerdict> judge() const {
    verify::GradientResults results{.dout = dout};
    for (const auto& [name, tensor] : tensors) results.gradients.emplace(name, tensor);
    return verify::judge_gradients(spec, inputs.problem(), results, {}, ThreadPool::shared());
  }

  Spec spec;
  Shape shape;
  verify::Inputs inputs;
  Tensor dout;
  std::map<std::string, Tensor> tensors;
};

Spec spec_of(DType dtype) {
  return {.dtype = dtype,
          .head_dim = 16,
          .score_mod = "tanh(score) * gain[h] + max(score, 0) + bias[kv_idx - q_idx + 20]",
          .mask_mod = "q_idx >= kv_idx",
          .buffers = {{"gain", {.dtype = f32, .shape = {NamedDim::num_q_heads}}},
                      {"bias", {.dtype = f32, .shape = {30}}}},
          .block = {32, 32},
          .outputs = {.lse = true},
          .gradients = {"q", "k", "v", "gain", "bias"}};
}

TEST_CASE("gradients: the kernel's are right, and others are not") {
  for (const DType dtype : {f32, f16, bf16}) {
    Call call(spec_of(dtype), {.broadcast_kv = dtype == f16});
    for (const auto& [name, verdict] : call.judge()) {
      INFO(to_string(dtype) << " " << name << " " << verdict.error_max << " of "
                            << verdict.bound_max);
      for (const std::string& reason : verdict.reasons) UNSCOPED_INFO(reason);
      CHECK(verdict.ok);
      CHECK(verdict.bound_max > 0);
    }
    if (dtype != f32) continue;
    for (auto& [name, tensor] : call.tensors) {
      const double kept = read_element(tensor.data(), tensor.dtype(), 7 % tensor.numel());
      write_element(tensor.data(), tensor.dtype(), 7 % tensor.numel(), kept + 0.01);
      CHECK_FALSE(call.judge().at(name).ok);
      write_element(tensor.data(), tensor.dtype(), 7 % tensor.numel(), kept);
    }
  }
}

// Terms of d_slopes are a hundred times as large as their sum, and so are scores.
TEST_CASE("gradients: a buffer's that is off by a tenth is not right, however far slopes reach") {
  const Spec spec = {.dtype = f32,
                     .head_dim = 64,
                     .score_mod = "score + slopes[h] * (kv_idx - q_idx)",
                     .mask_mod = "q_idx >= kv_idx",
                     .buffers = {{"slopes", {.dtype = f32, .shape = {NamedDim::num_q_heads}}}},
                     .outputs = {.lse = true},
                     .gradients = {"q", "k", "v", "slopes"}};
  Call call(spec, {}, 400, 400);
  CHECK(call.judge().at("d_slopes").ok);
  Tensor& slopes = call.tensors.at("d_slopes");
  for (std::int64_t i = 0; i < slopes.numel(); ++i) {
    write_element(slopes.data(), f32, i, 1.1 * read_element(slopes.data(), f32, i));
  }
  CHECK_FALSE(call.judge().at("d_slopes").ok);
}

// The mask keeps 100 columns before each row: row 1040 is far from the tiles of the first columns.
TEST_CASE("gradients: where infinity of dout may spread inside of a tile it is not judged") {
  const Spec spec = {.dtype = f32,
                     .head_dim = 16,
                     .mask_mod = "q_idx >= kv_idx && q_idx - kv_idx < 100",
                     .block = {32, 32},
                     .outputs = {.lse = true},
                     .gradients = {"q", "k", "v"}};
  constexpr std::int64_t kLength = 1060, kDim = 16, kRow = 1040;  // of the first head
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(value);
    Call call(spec, {}, kLength, kLength, OddElement{kRow * kDim + 3, value});
    for (const auto& [name, verdict] : call.judge()) {
      CAPTURE(name);
      for (const std::string& reason : verdict.reasons) UNSCOPED_INFO(reason);
      CHECK(verdict.ok);
    }
    if (value != kInfinity) continue;
    const auto judge_with = [&](const std::vector<std::pair<const char*, std::int64_t>>& places,
                                double odd) {
      std::map<std::string, Tensor> changed;
      for (const auto& [name, at] : places) {
        Tensor& tensor = call.tensors.at(name);
        changed.emplace(name, Tensor::copy_of(tensor));
        write_element(tensor.data(), f32, at, odd);
      }
      const auto verdicts = call.judge();
      for (auto& [name, tensor] : changed) call.tensors.at(name) = std::move(tensor);
      return verdicts;
    };
    // A column that the row drops, of a tile that it visits.
    constexpr std::int64_t kNear = 1045 * kDim;
    const auto reached = judge_with({{"dv", kNear}}, kInfinity);
    CHECK(reached.at("dv").ok);
    CHECK(reached.at("dv").spread > 0);
    CHECK_FALSE(judge_with({{"dv", kNear}}, 1e4).at("dv").ok);          // a number is judged
    CHECK_FALSE(judge_with({{"dv", 1030 * kDim + 3}}, 0).at("dv").ok);  // the row keeps this one
    // Columns of tiles that are skipped, and another row.
    for (const auto& [name, verdict] :
         judge_with({{"dv", 10 * kDim}, {"dk", 10 * kDim}, {"dq", 10 * kDim}}, kInfinity)) {
      CAPTURE(name);
      CHECK_FALSE(verdict.ok);
    }
    // Another head of v.
    CHECK_FALSE(judge_with({{"dv", kLength * kDim + kNear}}, kInfinity).at("dv").ok);
  }
}

}  // namespace
