#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/api/attention.hpp"
#include "runtime/cuda/device_memory.hpp"

/// A packed call with its tensors on the GPU, and room for sequences of any lengths up to its
/// shape.
class PackedGpuCall {
 public:
  PackedGpuCall(const tilewright::Spec& spec, const tilewright::PackedShape& shape);

  const tilewright::PackedShape& shape() const { return shape_; }
  tilewright::Sequences sequences() const;
  tilewright::ForwardTensors tensors() const;

  /// Other lengths in the same memory: sequences without rows or columns, one row, and more, with
  /// rows of no sequence after the last; columns anywhere in k and v.
  void change_lengths(unsigned seed);
  /// NaN in out and lse.
  void poison_outputs();
  /// The bytes of out, then those of lse.
  std::vector<std::byte> outputs() const;

 private:
  struct Tensor {
    tilewright::TensorView view;
    tilewright::cuda::DeviceMemory memory;
  };
  static Tensor make(tilewright::DType dtype, const std::vector<std::int64_t>& shape);
  static void set(Tensor& tensor, const std::vector<std::int32_t>& values);

  tilewright::PackedShape shape_;
  Tensor q_, k_, v_, out_, lse_, q_begin_, kv_begin_, kv_len_;
};

/// Captures rebuild and forward once and replays them with as many sets of lengths: each must give
/// the bits of a new plan in other memory, and leave rows of no sequence as they are.
void require_equal_replays(const tilewright::Spec& spec, const tilewright::PackedShape& shape,
                           int sets);

/// Runs rebuild and forward as often, over poisoned outputs: all must give the same bits.
void require_equal_repeats(const tilewright::Spec& spec, const tilewright::PackedShape& shape,
                           int repeats);

/// Packed specs that take the kernels that a GPU has: in f32, f16 and bf16, with masks and without.
std::vector<tilewright::Spec> packed_gpu_specs();
