#include "runtime/call/staged_backward.hpp"

#include <cstddef>
#include <deque>

#include "runtime/cuda/device_memory.hpp"

namespace tilewright {

struct StagedBackward::Copies {
  std::deque<cuda::DeviceTensor> inputs = {};
  std::deque<cuda::DeviceTensor> outputs = {};
  cuda::DeviceMemory workspace = {};
};

StagedBackward::StagedBackward(const Attention& attention, const Shape& shape,
                               const BackwardTensors& host, const ForwardTensors& forward,
                               const GradientBuffers& gradients, const Bindings& bindings,
                               bool deterministic)
    : StagedBackward(attention.device(), host, forward, gradients,
                     attention.workspace_size(shape, Pass::backward, bindings, deterministic)) {}

StagedBackward::StagedBackward(const Attention& attention, const PackedShape& shape,
                               const BackwardTensors& host, const ForwardTensors& forward,
                               const GradientBuffers& gradients, const Bindings& bindings,
                               bool deterministic)
    : StagedBackward(attention.device(), host, forward, gradients,
                     attention.workspace_size(shape, Pass::backward, bindings, deterministic)) {}

StagedBackward::StagedBackward(const Device& device, const BackwardTensors& host,
                               const ForwardTensors& forward, const GradientBuffers& gradients,
                               std::int64_t workspace_bytes)
    : device_(device), tensors_(host), gradients_(gradients) {
  tensors_.q = forward.q;
  tensors_.k = forward.k;
  tensors_.v = forward.v;
  tensors_.out = forward.out;
  if (forward.lse) tensors_.lse = *forward.lse;
  if (device_.kind() == Device::Kind::cpu) return;
  copies_ = std::make_unique<Copies>();
  const auto stage = [&](std::deque<cuda::DeviceTensor>& copies, TensorView& view) {
    if (view.data != nullptr) view = copies.emplace_back(device_, view).view();
  };
  stage(copies_->inputs, tensors_.dout);
  if (tensors_.dlse) stage(copies_->inputs, *tensors_.dlse);
  for (std::optional<TensorView>* gradient : {&tensors_.dq, &tensors_.dk, &tensors_.dv}) {
    if (*gradient) stage(copies_->outputs, **gradient);
  }
  for (auto& [name, view] : gradients_) stage(copies_->outputs, view);
  if (workspace_bytes == 0) return;
  copies_->workspace = cuda::DeviceMemory(device_, static_cast<std::size_t>(workspace_bytes));
  copies_->workspace.fill(0xff);  // a kernel that relies on zeros finds NaN
  workspace_ = TensorView::contiguous(copies_->workspace.data(), DType::u8, {workspace_bytes});
}

StagedBackward::~StagedBackward() = default;

void StagedBackward::wait() const {
  if (copies_) cuda::synchronize(device_);
}

void StagedBackward::copy_back() const {
  wait();
  if (!copies_) return;
  for (const cuda::DeviceTensor& output : copies_->outputs) output.copy_back();
}

}  // namespace tilewright
