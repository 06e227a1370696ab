#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "../api/attention.hpp"

namespace tilewright {

/// The tensors of a backward pass, which lie on the host, and its workspace, for an Attention on
/// any device: what StagedCall is for forward.
class StagedBackward {
 public:
  /// @param host    gradients are written to its dq, dk and dv; its q, k, v, out and lse are not
  /// read
  /// @param forward StagedCall::tensors() of the forward call, which has run
  StagedBackward(const Attention& attention, const Shape& shape, const BackwardTensors& host,
                 const ForwardTensors& forward, const GradientBuffers& gradients,
                 const Bindings& bindings, bool deterministic);
  /// The same of a packed call.
  StagedBackward(const Attention& attention, const PackedShape& shape, const BackwardTensors& host,
                 const ForwardTensors& forward, const GradientBuffers& gradients,
                 const Bindings& bindings, bool deterministic);
  ~StagedBackward();

  const BackwardTensors& tensors() const { return tensors_; }
  const GradientBuffers& gradients() const { return gradients_; }
  const TensorView& workspace() const { return workspace_; }

  /// Waits for the device.
  void wait() const;
  /// Waits for the device and fills the host's gradients.
  void copy_back() const;

 private:
  struct Copies;

  StagedBackward(const Device& device, const BackwardTensors& host, const ForwardTensors& forward,
                 const GradientBuffers& gradients, std::int64_t workspace_bytes);

  Device device_;
  BackwardTensors tensors_;
  GradientBuffers gradients_;
  TensorView workspace_ = {};
  std::unique_ptr<Copies> copies_;  // null on a CPU
};

}  // namespace tilewright
