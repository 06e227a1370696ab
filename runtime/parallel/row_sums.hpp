#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "../api/attention.hpp"

namespace tilewright::parallel {

/// Adds up gradients on a device, in f32. This class serves a CPU.
class RowSums {
 public:
  /// The kernel of a GPU; empty for a CPU.
  /// @throws Error with code compiler, or missing_kernel where kernels may not be compiled
  static std::vector<std::byte> compile(const Attention& attention, const Toolchain& kernels);

  /// On a GPU loads the kernel into the calling thread's context.
  /// @param threads of a CPU; null: ThreadPool::shared()
  static std::unique_ptr<RowSums> make(const Device& device, std::span<const std::byte> kernel,
                                       Executor* threads);

  explicit RowSums(Executor* threads) : threads_(threads) {}
  RowSums(const RowSums&) = delete;
  RowSums& operator=(const RowSums&) = delete;
  virtual ~RowSums() = default;

  /// to = from, or to + from, each element in float and rounded to the nearest of `to`'s dtype. In
  /// the stream's order.
  /// @param from rank 4, f32, f16 or bf16, with a contiguous last dimension; without data: zeros
  /// @param to   likewise, of the same shape and apart from it, with at most 2^31 - 1 rows
  virtual void add(const TensorView& from, const TensorView& to, bool adds, Stream stream);

 private:
  Executor* threads_;
};

}  // namespace tilewright::parallel
