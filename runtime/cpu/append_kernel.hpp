#pragma once

#include <memory>

#include "../../templates/abi/append.hpp"
#include "../api/executor.hpp"
#include "../call/plan_state.hpp"
#include "../library/kernel_library.hpp"
#include "arguments.hpp"

namespace tilewright::cpu {

/// A loaded append kernel and how it is spread over threads.
class AppendKernel {
 public:
  explicit AppendKernel(std::shared_ptr<const LoadedKernel> kernel);

  const KernelBuild& build() const { return kernel_->build; }

  /// @param plan null: the call has slots
  void run(abi::AppendArguments call, const PlanState* plan, const BindingArguments& bindings,
           Executor& threads) const;

 private:
  using Entry = void(const abi::AppendArguments*, const abi::SnippetArguments*, long long first,
                     long long count);

  std::shared_ptr<const LoadedKernel> kernel_;
  Entry* entry_;
};

}  // namespace tilewright::cpu
