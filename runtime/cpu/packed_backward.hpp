#pragma once

#include <cstdint>
#include <memory>

#include "../../templates/abi/cpu_packed_backward.hpp"
#include "../api/executor.hpp"
#include "../call/backward_call.hpp"
#include "../call/plan_state.hpp"
#include "../library/kernel_library.hpp"
#include "arguments.hpp"

namespace tilewright::cpu {

/// A loaded backward kernel of packed sequences and how it is spread over threads. Equal calls give
/// equal bits, whatever the number of threads.
class PackedBackwardKernel {
 public:
  explicit PackedBackwardKernel(std::shared_ptr<const LoadedKernel> kernel);

  const KernelBuild& build() const { return kernel_->build; }
  /// Rows of k of a tile whose dk and dv one thread computes.
  std::int64_t column_side() const { return kv_tile_; }

  /// @param plan that serves backward
  void run(const Spec& spec, const BackwardCall& call, const PlanState& plan,
           const BindingArguments& bindings, Executor& threads) const;

 private:
  using Rows = void(const abi::PackedBackwardArguments*, int b, int h, int q_tile, double* sums,
                    void* scratch);
  using TileOfColumns = void(const abi::PackedBackwardArguments*, int h_kv, int first_row,
                             int count, void* scratch);
  using AddColumns = void(const abi::PackedBackwardArguments*, const abi::ColumnsOfTile*, int b,
                          int h_kv, void* scratch);

  class Run;

  std::shared_ptr<const LoadedKernel> kernel_;
  Rows* rows_;
  TileOfColumns* begin_columns_;
  AddColumns* add_columns_;
  TileOfColumns* store_columns_;
  std::int64_t q_tile_;
  std::int64_t kv_tile_;
  std::int64_t scratch_bytes_;
};

}  // namespace tilewright::cpu
