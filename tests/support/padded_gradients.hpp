#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/packed_gradients.hpp"
#include "tests/support/padded_dims.hpp"
#include "verify/fast_math.hpp"
#include "verify/gradients.hpp"
#include "verify/random.hpp"

// Gradients of head dims that kernels pad inside their tiles, on any device whose memory is the
// host's.

namespace tilewright::padded_dims {

/// A gradient whose rows have elements after them that no kernel may write.
class SpacedTensor {
 public:
  explicit SpacedTensor(const TensorView& like) : tensor_(Tensor::zeros(like.dtype, spaced(like))) {
    for (std::int64_t i = 0; i < tensor_.numel(); ++i) {
      write_element(tensor_.data(), tensor_.dtype(), i, kUnwritten);
    }
  }

  TensorView view() const {
    TensorView result = tensor_.view();
    result.shape[result.rank - 1] -= kSpace;
    return result;
  }

  /// Whether each element of the gradient was written, and no other.
  bool is_kept() const {
    const std::int64_t width = tensor_.shape().back();
    for (std::int64_t i = 0; i < tensor_.numel(); ++i) {
      const bool is_unwritten = read_element(tensor_.data(), tensor_.dtype(), i) == kUnwritten;
      if (is_unwritten != (i % width >= width - kSpace)) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t kSpace = 3;
  static constexpr double kUnwritten = -117;

  static std::vector<std::int64_t> spaced(const TensorView& like) {
    std::vector<std::int64_t> shape(like.extents().begin(), like.extents().end());
    shape.back() += kSpace;
    return shape;
  }

  Tensor tensor_;
};

struct GradientsOfCall {
  std::map<std::string, verify::GradientVerdict> verdicts;
  bool is_kept = true;

  bool is_right() const {
    bool right = is_kept;
    for (const auto& [name, verdict] : verdicts) right = right && verdict.ok;
    return right;
  }
};

inline GradientsOfCall gradients_of_call(const Spec& spec, AttentionOptions options) {
  const Shape shape{.batch = 2, .num_q_heads = 4, .num_kv_heads = 2, .q_len = 37, .kv_len = 50};
  const Attention attention(spec, std::move(options));
  const verify::Inputs inputs = verify::random_inputs(spec, shape, 3);
  const verify::Problem problem = inputs.problem();
  const Bindings bindings = attention.bind(problem.snippet);
  const BlockMask mask = attention.block_mask(shape, bindings, {.transposed = true});
  Tensor out = Tensor::zeros(spec.output_dtype(), {2, 4, 37, spec.value_head_dim()});
  Tensor lse = Tensor::zeros(f32, {2, 4, 37});
  Tensor dout = Tensor::zeros(spec.output_dtype(), out.shape());
  verify::Random random(1, "dout");
  for (std::int64_t i = 0; i < dout.numel(); ++i) {
    write_element(dout.data(), dout.dtype(), i, random.normal());
  }
  attention.forward({.q = problem.q, .k = problem.k, .v = problem.v, .out = out, .lse = lse}, mask,
                    bindings);
  const SpacedTensor dq(problem.q), dk(problem.k), dv(problem.v);
  packed_calls::Workspace workspace(
      attention.workspace_size(shape, Pass::backward, bindings, false));
  attention.backward({.q = problem.q,
                      .k = problem.k,
                      .v = problem.v,
                      .out = out,
                      .lse = lse,
                      .dout = dout,
                      .dq = dq.view(),
                      .dk = dk.view(),
                      .dv = dv.view()},
                     mask, bindings, {}, {.workspace = workspace.view()});
  verify::GradientResults results{.dout = dout};
  results.gradients = {{"dq", dq.view()}, {"dk", dk.view()}, {"dv", dv.view()}};
  results.fast_math = verify::uses_fast_math(spec, attention.device());
  return {.verdicts = verify::judge_gradients(spec, problem, results, {}, ThreadPool::shared()),
          .is_kept = dq.is_kept() && dk.is_kept() && dv.is_kept()};
}

inline Spec spec_with_gradients(DType dtype, std::int64_t head_dim, std::int64_t v_head_dim) {
  Spec spec = spec_of(dtype, head_dim, v_head_dim);
  spec.block = {32, 32};
  spec.gradients = {"q", "k", "v"};
  return spec;
}

/// Odd and even dims, q and v of one padded dim, and dims whose dk and dv have blocks of their own.
inline void check_gradients(const char* device) {
  for (const Spec& spec : {spec_with_gradients(bf16, 17, 94), spec_with_gradients(f16, 20, 17),
                           spec_with_gradients(f32, 9, 30), spec_with_gradients(bf16, 121, 203)}) {
    CAPTURE(to_string(spec.dtype), spec.head_dim, spec.value_head_dim());
    const GradientsOfCall got = gradients_of_call(spec, {.device = Device::parse(device)});
    CHECK(got.is_kept);
    CHECK(got.verdicts.size() == 3);
    for (const auto& [name, verdict] : got.verdicts) {
      CAPTURE(name, verdict.error_max, verdict.bound_max, verdict.reasons);
      CHECK(verdict.ok);
      CHECK(verdict.bound_max > 0);
    }
  }
}

inline void check_packed_gradients(const char* device) {
  for (const DType dtype : {f32, bf16}) {
    packed_calls::Batch batch{
        .lengths = {{1, 43}, {35, 18}, {21, 70}}, .heads = 4, .kv_heads = 2, .dim = 17};
    batch.make();
    Spec spec{.dtype = dtype,
              .head_dim = 17,
              .layout = Layout::packed,
              .mask_mod = "q_idx >= kv_idx || kv_idx > 60",
              .block = {32, 48},
              .outputs = {.lse = true},
              .gradients = {"q", "k", "v"}};
    packed_calls::GradientCase one{.spec = std::move(spec), .batch = std::move(batch)};
    packed_calls::PackedGradients calls(one, Device::parse(device));
    // As packed_backward_test.cpp and its neighbours have it of dims that are not padded.
    calls.compare(calls.run(), calls.dense(), dtype == f32 ? 2e-4f : 0.02f);
  }
}

}  // namespace tilewright::padded_dims
