#pragma once

#include <cstdint>
#include <memory>

#include "../api/block_mask.hpp"
#include "../api/executor.hpp"
#include "../call/backward_call.hpp"
#include "../library/kernel_library.hpp"
#include "arguments.hpp"
#include "gradient_sums.hpp"

namespace tilewright::cpu {

/// A loaded backward kernel and how it is spread over threads. The work of a call is divided in the
/// same way whatever the number of threads, so equal calls give equal bits.
class BackwardKernel {
 public:
  explicit BackwardKernel(std::shared_ptr<const LoadedKernel> kernel);

  const KernelBuild& build() const { return kernel_->build; }

  /// @param mask null where the call has none; with its transposed lists
  void run(const BackwardCall& call, const BlockMask* mask, const Spec& spec,
           const Bindings& bindings, Executor& threads) const;

 private:
  using Rows = void(const abi::BackwardArguments*, int b, int h, int q_tile, double* sums,
                    void* scratch);
  using Columns = void(const abi::BackwardArguments*, int first_b, int count_b, int h_kv,
                       int kv_tile, void* scratch);

  void run_columns(const BackwardCall& call, const abi::BackwardArguments& arguments,
                   Executor& threads) const;
  void run_rows(const BackwardCall& call, const abi::BackwardArguments& arguments,
                const GradientSums& sums, Executor& threads) const;

  std::shared_ptr<const LoadedKernel> kernel_;
  Rows* rows_;
  Columns* columns_;
  std::int64_t q_tile_;
  std::int64_t kv_tile_;
  std::int64_t scratch_bytes_;
};

}  // namespace tilewright::cpu
