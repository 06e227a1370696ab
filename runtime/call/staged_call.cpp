#include "runtime/call/staged_call.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "runtime/cuda/device_memory.hpp"

namespace tilewright {

struct StagedCall::Input {
  std::string name;
  cuda::DeviceTensor copy;
};

StagedCall::StagedCall(const Device& device, const ForwardTensors& host,
                       const SnippetInputs& inputs, std::size_t guard_bytes)
    : StagedCall(device, inputs) {
  tensors_ = host;
  if (device.kind() == Device::Kind::cpu) return;
  tensors_.q = stage("q", host.q);
  tensors_.k = stage("k", host.k);
  tensors_.v = stage("v", host.v);
  if (host.k_new) tensors_.k_new = stage("k_new", *host.k_new);
  if (host.v_new) tensors_.v_new = stage("v_new", *host.v_new);
  tensors_.out = stage_output(host.out, guard_bytes);
  if (host.lse) tensors_.lse = stage_output(*host.lse, guard_bytes);
  if (host.max_scores) tensors_.max_scores = stage_output(*host.max_scores, guard_bytes);
  if (host.weights) tensors_.weights = stage_output(*host.weights, guard_bytes);
}

StagedCall::StagedCall(const Device& device, const SnippetInputs& inputs)
    : device_(device), inputs_(inputs) {
  if (device.kind() == Device::Kind::cpu) return;
  for (auto& [name, buffer] : inputs_.buffers) buffer = stage("buffer " + name, buffer);
}

StagedCall::~StagedCall() = default;

// What is wrong with a tensor is for the call to say, so one without data stays as it is.
TensorView StagedCall::stage(const std::string& name, const TensorView& host) {
  if (!host.data) return host;
  return copies_.emplace_back(Input{name, {device_, host, kStagedInputMargin}}).copy.view();
}

TensorView StagedCall::stage_output(const TensorView& host, std::size_t guard_bytes) {
  if (!host.data) return host;
  return outputs_.emplace_back(device_, host, guard_bytes, true).view();
}

void StagedCall::wait() const {
  if (device_.kind() == Device::Kind::cuda) cuda::synchronize(device_);
}

void StagedCall::copy_back() const {
  wait();
  for (const cuda::DeviceTensor& output : outputs_) output.copy_back();
}

std::optional<std::string> StagedCall::changed_input() const {
  for (const Input& input : copies_) {
    const std::optional<std::ptrdiff_t> byte = input.copy.first_change();
    if (byte) return fmt::format("{} was written to on the GPU, at byte {}", input.name, *byte);
  }
  return std::nullopt;
}

}  // namespace tilewright
