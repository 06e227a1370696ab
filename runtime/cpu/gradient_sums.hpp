#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../../templates/abi/cpu.hpp"
#include "../api/executor.hpp"
#include "../api/tensor.hpp"

namespace tilewright::cpu {

/// Where the cells of a gradient lie among those of all gradients, as a dense array.
/// @param first the number of the cells before them
abi::GradientArgument dense_cells(const TensorView& gradient, std::int64_t first);

/// The sums of a call's gradients of buffers and scalars: dense arrays, one after the other.
class GradientSums {
 public:
  /// @param views where the gradients go
  explicit GradientSums(const std::vector<TensorView>& views);

  const abi::GradientArgument* arguments() const { return arguments_.data(); }

  /// Runs all items and writes the gradients. The items are divided in the same way whatever the
  /// number of threads, so equal calls give equal bits.
  /// @param run adds to `sums`, which is null where there are no gradients
  void collect(std::int64_t items, Executor& threads,
               const std::function<void(std::int64_t item, double* sums)>& run) const;

 private:
  const std::vector<TensorView>& views_;
  std::vector<abi::GradientArgument> arguments_ = {};
  std::int64_t cells_ = 0;
};

}  // namespace tilewright::cpu
