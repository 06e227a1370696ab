#include "cli/bench_measure.hpp"

#include "cli/call.hpp"
#include "cli/inputs.hpp"
#include "generator/tactic.hpp"

namespace tilewright::cli {

PreparedCall::PreparedCall(const Spec& spec, const Shape& shape, std::uint64_t seed,
                           ThreadPool& threads, const Device& device)
    : attention_(spec, {.device = device, .kernels = kernel_context(), .threads = &threads}),
      inputs_(random_inputs(spec, shape, seed)),
      view_(inputs_.problem()) {
  std::vector<std::int64_t> extents(view_.q.extents().begin(), view_.q.extents().end());
  extents[3] = spec.value_head_dim();
  out_ = Tensor::zeros(spec.output_dtype(), extents);
  if (spec.outputs.lse) {
    lse_ = Tensor::zeros(DType::f32, {shape.batch, shape.num_q_heads, shape.q_len});
  }
  staged_ = std::make_unique<const StagedCall>(device, host_tensors(), view_.snippet);
  bindings_ = attention_.bind(staged_->inputs());
  if (!spec.mask_mod.empty()) mask_ = attention_.block_mask(shape, bindings_);
}

ForwardTensors PreparedCall::host_tensors() const {
  ForwardTensors tensors{
      .q = view_.q, .k = view_.k, .v = view_.v, .out = out_.view(), .lse = std::nullopt};
  if (lse_) tensors.lse = lse_->view();
  return tensors;
}

verify::Inputs PreparedCall::random_inputs(const Spec& spec, const Shape& shape,
                                           std::uint64_t seed) {
  require_memory(spec, shape);
  return verify::random_inputs(spec, shape, seed);
}

std::string PreparedCall::tactic() const {
  return choose_tactic(attention_.spec(), attention_.target()).describe();
}

void PreparedCall::build_mask() const {
  attention_.block_mask(view_.shape, bindings_);
}

void PreparedCall::forward() const {
  if (mask_) {
    attention_.forward(staged_->tensors(), *mask_, bindings_);
  } else {
    attention_.forward(staged_->tensors(), bindings_);
  }
  staged_->wait();
}

double PreparedCall::operations() const {
  const Spec& spec = attention_.spec();
  const Shape& shape = view_.shape;
  const double pairs = static_cast<double>(shape.batch * shape.num_q_heads) *
                       static_cast<double>(shape.q_len) * static_cast<double>(shape.kv_len);
  const double density = mask_ ? mask_->density() : 1;
  return 2.0 * static_cast<double>(spec.head_dim + spec.value_head_dim()) * pairs * density;
}

}  // namespace tilewright::cli
