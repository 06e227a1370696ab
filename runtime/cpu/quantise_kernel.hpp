#pragma once

#include <memory>

#include "../../templates/abi/quantise.hpp"
#include "../api/executor.hpp"
#include "../call/plan_state.hpp"
#include "../call/quantise_call.hpp"
#include "../library/kernel_library.hpp"
#include "arguments.hpp"

namespace tilewright::cpu {

/// A loaded quantise kernel and how it is spread over threads.
class QuantiseKernel {
 public:
  explicit QuantiseKernel(std::shared_ptr<const LoadedKernel> kernel);

  const KernelBuild& build() const { return kernel_->build; }

  /// @param plan null: all rows of the tensor
  void run(const QuantiseCall& call, const PlanState* plan, const BindingArguments& bindings,
           Executor& threads) const;

 private:
  using Entry = void(const abi::QuantiseArguments*, const abi::SnippetArguments*, long long block);

  std::shared_ptr<const LoadedKernel> kernel_;
  Entry* entry_;
};

}  // namespace tilewright::cpu
