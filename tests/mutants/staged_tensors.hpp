#pragma once

#include <deque>

#include "runtime/api/device.hpp"
#include "runtime/api/tensor.hpp"
#include "runtime/cuda/device_memory.hpp"

namespace tilewright::mutants {

/// Copies the tensors of append, merge and quantise into a GPU's memory, and their results back; on
/// a CPU the call gets the tensors themselves. StagedCall, StagedPlan and StagedBackward do so for
/// forward, plans and backward.
class StagedTensors {
 public:
  explicit StagedTensors(const Device& device) : device_(device) {}

  TensorView read(const TensorView& host) { return stage(inputs_, host); }
  TensorView written(const TensorView& host) { return stage(outputs_, host); }

  /// Waits for the device and fills what is written on the host.
  void copy_back() const {
    if (device_.kind() == Device::Kind::cuda) cuda::synchronize(device_);
    for (const cuda::DeviceTensor& output : outputs_) output.copy_back();
  }

 private:
  TensorView stage(std::deque<cuda::DeviceTensor>& copies, const TensorView& host) {
    if (device_.kind() == Device::Kind::cpu) return host;
    return copies.emplace_back(device_, host).view();
  }

  Device device_;
  std::deque<cuda::DeviceTensor> inputs_, outputs_;
};

}  // namespace tilewright::mutants
