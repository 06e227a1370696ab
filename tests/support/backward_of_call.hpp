#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../../runtime/api/attention.hpp"
#include "../../runtime/io/float16.hpp"
#include "../../verify/gradients.hpp"
#include "../../verify/random.hpp"
#include "../../verify/sequences.hpp"

// Forward and backward of one call, on any device whose memory is the host's.

namespace tilewright {

class BackwardOfCall {
 public:
  /// @param attention, problem must outlive it
  BackwardOfCall(const Attention& attention, const verify::Problem& problem)
      : attention_(attention), spec_(attention.spec()), problem_(problem) {
    const Shape& shape = problem.shape;
    const std::vector<std::int64_t> rows =
        spec_.is_packed() ? std::vector<std::int64_t>{shape.num_q_heads, shape.q_len}
                          : std::vector<std::int64_t>{shape.batch, shape.num_q_heads, shape.q_len};
    std::vector<std::int64_t> of_out = extents(problem.q);
    of_out.back() = spec_.value_head_dim();
    out_ = Tensor::zeros(spec_.output_dtype(), of_out);
    lse_ = Tensor::zeros(DType::f32, rows);
    dout_ = random_tensor(spec_.output_dtype(), of_out, "dout");
    for (const std::string& name : spec_.gradients) add_gradient(name);
    if (spec_.outputs.weights) {
      weights_ = Tensor::zeros(spec_.output_dtype(),
                               {shape.batch, shape.num_q_heads, shape.q_len, shape.kv_len});
    }
  }

  /// lse has a gradient too.
  void add_dlse() { dlse_ = random_tensor(DType::f32, extents(lse_), "dlse"); }

  void run() { spec_.is_packed() ? run_packed() : run_dense(); }

  /// Views; this must outlive them.
  verify::GradientResults results() const {
    verify::GradientResults results{.dout = dout_, .out = out_.view(), .dlse = view_of(dlse_)};
    for (const auto& [name, tensor] : gradients_) results.gradients.emplace(name, tensor);
    return results;
  }

 private:
  struct alignas(256) WorkspacePart {
    unsigned char bytes[256];
  };
  using Workspace = std::vector<WorkspacePart>;

  static std::vector<std::int64_t> extents(const TensorView& view) {
    return {view.extents().begin(), view.extents().end()};
  }

  static Tensor random_tensor(DType dtype, const std::vector<std::int64_t>& shape,
                              const char* name) {
    Tensor tensor = Tensor::zeros(dtype, shape);
    verify::Random random(1, name);
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      write_element(tensor.data(), dtype, i, random.normal());
    }
    return tensor;
  }

  static std::optional<TensorView> view_of(const std::optional<Tensor>& tensor) {
    if (!tensor) return {};
    return tensor->view();
  }

  static TensorView bytes_of(Workspace& memory, std::int64_t bytes) {
    memory.resize(static_cast<std::size_t>(bytes / 256 + 1));
    return TensorView::contiguous(static_cast<void*>(memory.data()), DType::u8, {bytes});
  }

  void add_gradient(const std::string& name) {
    const bool is_tensor = name == "q" || name == "k" || name == "v";
    const DType dtype = name == "q" ? spec_.dtype
                        : is_tensor ? spec_.key_value_dtype()
                                    : DType::f32;
    const std::string key = (is_tensor ? "d" : "d_") + name;
    gradients_.emplace(key, Tensor::zeros(dtype, extents_of(name)));
    if (!is_tensor) named_.emplace(name, gradients_.at(key).view());
  }

  // Of q, k, v, a buffer or a scalar.
  std::vector<std::int64_t> extents_of(const std::string& name) const {
    if (name == "q") return extents(problem_.q);
    if (name == "k") return extents(problem_.k);
    if (name == "v") return extents(problem_.v);
    const auto buffer = problem_.snippet.buffers.find(name);
    if (buffer == problem_.snippet.buffers.end()) return {1};
    return extents(buffer->second);
  }

  std::optional<TensorView> gradient(const char* name) const {
    const auto found = gradients_.find(name);
    if (found == gradients_.end()) return {};
    return found->second.view();
  }

  ForwardTensors forward_tensors() const {
    return {.q = problem_.q,
            .k = problem_.k,
            .v = problem_.v,
            .out = out_,
            .lse = lse_.view(),
            .weights = view_of(weights_)};
  }

  BackwardTensors backward_tensors() const {
    return {.q = problem_.q,
            .k = problem_.k,
            .v = problem_.v,
            .out = out_,
            .lse = lse_,
            .dout = dout_,
            .dlse = view_of(dlse_),
            .dq = gradient("dq"),
            .dk = gradient("dk"),
            .dv = gradient("dv")};
  }

  void run_dense() {
    const Bindings bindings = attention_.bind(problem_.snippet);
    Workspace memory;
    const std::int64_t q_offset = problem_.shape.q_offset, kv_offset = problem_.shape.kv_offset;
    const BackwardOptions options{
        .q_offset = q_offset,
        .kv_offset = kv_offset,
        .workspace = bytes_of(
            memory, attention_.workspace_size(problem_.shape, Pass::backward, bindings, false))};
    if (spec_.mask_mod.empty()) {
      attention_.forward(forward_tensors(), bindings,
                         {.q_offset = q_offset, .kv_offset = kv_offset});
      attention_.backward(backward_tensors(), bindings, named_, options);
      return;
    }
    const BlockMask mask = attention_.block_mask(problem_.shape, bindings, {.transposed = true});
    attention_.forward(forward_tensors(), mask, bindings,
                       {.q_offset = q_offset, .kv_offset = kv_offset});
    attention_.backward(backward_tensors(), mask, bindings, named_, options);
  }

  void run_packed() {
    const Bindings bindings = attention_.bind(problem_.snippet);
    const PackedShape shape = verify::packed_shape(problem_);
    Workspace of_plan, of_backward;
    const Plan plan = attention_.plan(
        shape, *problem_.sequences, bindings,
        {.workspace = bytes_of(of_plan, attention_.workspace_size(shape)), .backward = true});
    attention_.forward(forward_tensors(), plan, bindings);
    attention_.backward(
        backward_tensors(), plan, bindings, named_,
        {.workspace = bytes_of(of_backward,
                               attention_.workspace_size(shape, Pass::backward, bindings, false))});
  }

  const Attention& attention_;
  const Spec& spec_;
  const verify::Problem& problem_;
  Tensor out_, lse_, dout_;
  std::optional<Tensor> dlse_, weights_;
  std::map<std::string, Tensor> gradients_;
  GradientBuffers named_;
};

}  // namespace tilewright
