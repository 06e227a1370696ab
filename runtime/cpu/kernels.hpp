#pragma once

#include <memory>

#include "../api/block_mask.hpp"
#include "../api/executor.hpp"
#include "../call/forward_call.hpp"
#include "../call/plan_state.hpp"
#include "../library/kernel_library.hpp"
#include "arguments.hpp"

namespace tilewright::cpu {

/// A loaded forward kernel, or one of weights, and how it is spread over threads.
class ForwardKernel {
 public:
  /// @param entry "tilewright_forward" or "tilewright_weights"
  ForwardKernel(std::shared_ptr<const LoadedKernel> kernel, const char* entry);

  const KernelBuild& build() const { return kernel_->build; }

  /// Runs every tile of q rows, tiles of the same head one after the other.
  void run(const ForwardCall& call, const BindingArguments& bindings, Executor& threads) const;

  /// Runs over the tiles of a block mask, the rows with the most tiles first.
  void run(const ForwardCall& call, const BlockMask& mask, const BindingArguments& bindings,
           Executor& threads) const;

  /// Runs the sequences of a packed call, the rows of tiles that visit most tiles first.
  void run(const Spec& spec, const ForwardCall& call, const PlanState& plan,
           const BindingArguments& bindings, Executor& threads) const;

 private:
  using Entry = void(const abi::ForwardArguments*, int b, int h, int q_tile, void* scratch);
  void run_tile(const abi::ForwardArguments& arguments, std::int64_t b, std::int64_t h,
                std::int64_t q_tile) const;

  std::shared_ptr<const LoadedKernel> kernel_;
  Entry* entry_;
  std::int64_t q_tile_;  // rows of q that one call of the entry handles
  std::int64_t scratch_bytes_;
};

}  // namespace tilewright::cpu
