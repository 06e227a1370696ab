#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "../api/attention.hpp"

namespace tilewright::cuda {
class DeviceTensor;
}

namespace tilewright {

/// Bytes before and after a copy of what is only read. They hold NaN, so that a read outside shows
/// in the result.
inline constexpr std::size_t kStagedInputMargin = 256;

/// A call whose tensors lie on the host, for an Attention on any device: tensors and buffers are
/// copied to where it can reach them, and the outputs back. On a CPU nothing is copied. For tools
/// and tests: a program that cares for speed keeps its tensors on the device.
class StagedCall {
 public:
  /// @param guard_bytes before and after the outputs, which are copied there and back, so that a
  ///        write outside of them shows on the host; they must be readable there
  StagedCall(const Device& device, const ForwardTensors& host, const SnippetInputs& inputs,
             std::size_t guard_bytes = 0);
  /// For a block mask: buffers alone.
  StagedCall(const Device& device, const SnippetInputs& inputs);
  ~StagedCall();

  const ForwardTensors& tensors() const { return tensors_; }
  const SnippetInputs& inputs() const { return inputs_; }

  /// Waits for the device.
  void wait() const;
  /// Waits for the device and fills the host's outputs.
  void copy_back() const;
  /// On a GPU, waits and reads q, k, v and the buffers back, with 256 bytes before and after each:
  /// which one a kernel wrote to, and where. What it did on a CPU shows on the host.
  std::optional<std::string> changed_input() const;

 private:
  TensorView stage(const std::string& name, const TensorView& host);
  TensorView stage_output(const TensorView& host, std::size_t guard_bytes);

  struct Input;

  Device device_;
  ForwardTensors tensors_;
  SnippetInputs inputs_;
  std::deque<Input> copies_;
  std::deque<cuda::DeviceTensor> outputs_;
};

}  // namespace tilewright
