#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../templates/abi/cuda_backward.hpp"
#include "../call/backward_call.hpp"
#include "backward_launch.hpp"

namespace tilewright::cuda {

/// Of the bins of one sum of a deterministic call.
inline constexpr std::int64_t kBinBytes = abi::cuda::kSumBins * sizeof(long long);

/// Bytes of workspace of the sums of a gradient of a buffer or a scalar.
std::int64_t bytes_of_sums(const TensorView& gradient, bool deterministic);

/// The sums of a call's gradients of buffers and scalars: where they lie, and how they reach the
/// caller's tensors.
class GradientSums {
 public:
  /// @param begin  bytes of the workspace before them
  GradientSums(const BackwardCall& call, std::int64_t begin);

  std::int64_t bytes() const { return bytes_; }  ///< of the whole workspace

  /// One for each gradient, and at least one.
  std::vector<abi::cuda::SumsArgument> arguments(const BackwardCall& call) const;

  /// Sets them to zero.
  void clear(const BackwardLaunch& launch, const BackwardCall& call) const;

  /// Writes the gradients whose sums are not the caller's tensors, by the binary's
  /// tilewright_backward_finish.
  void finish(const BackwardLaunch& launch, const BackwardCall& call) const;

 private:
  abi::cuda::SumsArgument argument(const BackwardCall& call, std::size_t i) const;

  std::vector<std::int64_t> offsets_ = {};  // in the workspace; -1: the caller's tensor
  std::int64_t bytes_;
};

}  // namespace tilewright::cuda
