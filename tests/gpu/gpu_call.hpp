#pragma once

#include <cstdint>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/cuda/context.hpp"
#include "runtime/cuda/device_memory.hpp"

/// A small call of attention in float, with its tensors on the host and on the GPU.
class GpuCall {
 public:
  explicit GpuCall(std::int64_t q_len = 300, std::int64_t kv_len = 400, unsigned seed = 1);

  tilewright::Shape shape() const;
  tilewright::ForwardTensors on_gpu() const;
  tilewright::ForwardTensors on_host() const;

  /// Other numbers in q, k and v, in the same memory.
  void change_contents(unsigned seed);
  void poison_out();
  /// The GPU's out.
  std::vector<float> out();
  /// out as the CPU computes it.
  std::vector<float> expected(const tilewright::Spec& spec) const;

 private:
  std::int64_t q_len_;
  std::int64_t kv_len_;
  tilewright::Tensor q_, k_, v_, out_;
  tilewright::cuda::DeviceMemory gpu_q_, gpu_k_, gpu_v_, gpu_out_;
};

/// Fills a tensor on the GPU with bytes that are NaN in every floating type, in the stream's order.
void poison(const tilewright::TensorView& tensor, tilewright::cuda::Stream stream);

/// The first GPU.
tilewright::Device gpu();
/// The greatest difference; infinite where one is not a number.
float distance(const std::vector<float>& a, const std::vector<float>& b);
