#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/api/thread_pool.hpp"
#include "runtime/io/float16.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dropout.hpp"
#include "tests/support/packed_batch.hpp"
#include "verify/fast_math.hpp"
#include "verify/gradients.hpp"
#include "verify/random.hpp"
#include "verify/random_inputs.hpp"
#include "verify/random_sequences.hpp"

// Gradients of calls with dropout, on any device whose memory is the host's.

namespace tilewright::dropout_calls {

inline Tensor normal_tensor(DType dtype, const std::vector<std::int64_t>& shape) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  verify::Random random(1, "dout");
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    write_element(tensor.data(), dtype, i, random.normal());
  }
  return tensor;
}

/// The gradients of a call, judged. Its spec names q, k, v and buffers.
class GradientsOfCall {
 public:
  GradientsOfCall(const Spec& spec, const verify::Problem& problem, const Device& device)
      : attention_(spec, {.device = device}),
        problem_(problem),
        bindings_(attention_.bind(problem.snippet)),
        out_(Tensor::zeros(spec.output_dtype(), extents(problem.q))),
        lse_(Tensor::zeros(f32, lse_shape(spec, problem))),
        dout_(normal_tensor(spec.output_dtype(), extents(out_))) {
    gradients_.emplace("dq", Tensor::zeros(spec.dtype, extents(problem.q)));
    gradients_.emplace("dk", Tensor::zeros(spec.dtype, extents(problem.k)));
    gradients_.emplace("dv", Tensor::zeros(spec.dtype, extents(problem.v)));
    for (const auto& [name, buffer] : problem.snippet.buffers) {
      gradients_.emplace("d_" + name, Tensor::zeros(f32, extents(buffer)));
      named_.emplace(name, gradients_.at("d_" + name).view());
    }
  }

  void check() {
    problem_.sequences ? run_packed() : run_dense();
    verify::GradientResults results{.dout = dout_};
    for (const auto& [name, tensor] : gradients_) results.gradients.emplace(name, tensor);
    results.fast_math = verify::uses_fast_math(attention_.spec(), attention_.device());
    const auto verdicts =
        verify::judge_gradients(attention_.spec(), problem_, results, {}, ThreadPool::shared());
    CHECK(verdicts.size() == gradients_.size());
    for (const auto& [name, verdict] : verdicts) {
      CAPTURE(name, verdict.error_max, verdict.bound_max, verdict.reasons);
      CHECK(verdict.ok);
    }
  }

 private:
  static std::vector<std::int64_t> extents(const TensorView& view) {
    return {view.extents().begin(), view.extents().end()};
  }
  static std::vector<std::int64_t> lse_shape(const Spec& spec, const verify::Problem& problem) {
    const Shape& shape = problem.shape;
    if (spec.is_packed()) return {shape.num_q_heads, shape.q_len};
    return {shape.batch, shape.num_q_heads, shape.q_len};
  }

  ForwardTensors forward_tensors() const {
    return {.q = problem_.q, .k = problem_.k, .v = problem_.v, .out = out_, .lse = lse_.view()};
  }
  BackwardTensors tensors() const {
    return {.q = problem_.q,
            .k = problem_.k,
            .v = problem_.v,
            .out = out_,
            .lse = lse_,
            .dout = dout_,
            .dq = gradients_.at("dq").view(),
            .dk = gradients_.at("dk").view(),
            .dv = gradients_.at("dv").view()};
  }

  void run_dense() {
    packed_calls::Workspace workspace(
        attention_.workspace_size(problem_.shape, Pass::backward, bindings_, false));
    const BackwardOptions options{.q_offset = problem_.shape.q_offset,
                                  .kv_offset = problem_.shape.kv_offset,
                                  .workspace = workspace.view()};
    if (attention_.spec().mask_mod.empty()) {
      attention_.forward(forward_tensors(), bindings_,
                         {.q_offset = options.q_offset, .kv_offset = options.kv_offset});
      attention_.backward(tensors(), bindings_, named_, options);
      return;
    }
    const BlockMask mask = attention_.block_mask(problem_.shape, bindings_, {.transposed = true});
    attention_.forward(forward_tensors(), mask, bindings_,
                       {.q_offset = options.q_offset, .kv_offset = options.kv_offset});
    attention_.backward(tensors(), mask, bindings_, named_, options);
  }

  void run_packed() {
    const PackedShape shape{.batch = problem_.shape.batch,
                            .num_q_heads = problem_.shape.num_q_heads,
                            .num_kv_heads = problem_.shape.num_kv_heads,
                            .total_q = problem_.shape.q_len,
                            .total_kv = problem_.shape.kv_len};
    packed_calls::Workspace memory(attention_.workspace_size(shape));
    packed_calls::Workspace workspace(
        attention_.workspace_size(shape, Pass::backward, bindings_, false));
    const Plan plan = attention_.plan(shape, *problem_.sequences, bindings_,
                                      {.workspace = memory.view(), .backward = true});
    attention_.forward(forward_tensors(), plan, bindings_);
    attention_.backward(tensors(), plan, bindings_, named_, {.workspace = workspace.view()});
  }

  Attention attention_;
  const verify::Problem& problem_;
  Bindings bindings_;
  Tensor out_, lse_, dout_;
  std::map<std::string, Tensor> gradients_;
  GradientBuffers named_;
};

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
    const verify::Problem problem = inputs.problem();
    GradientsOfCall(spec, problem, device).check();
  } else {
    const Shape shape = {.batch = 2,
                         .num_q_heads = 4,
                         .num_kv_heads = 2,
                         .q_len = 75,
                         .kv_len = 147,
                         .q_offset = 5,
                         .kv_offset = kv_offset};
    const verify::Inputs inputs = verify::random_inputs(spec, shape, 7);
    const verify::Problem problem = inputs.problem();
    GradientsOfCall(spec, problem, device).check();
  }
}

}  // namespace tilewright::dropout_calls
