#pragma once

#include <memory>

#include "../../templates/abi/merge.hpp"
#include "../api/executor.hpp"
#include "../library/kernel_library.hpp"

namespace tilewright::cpu {

/// A loaded merge kernel and how it is spread over threads.
class MergeKernel {
 public:
  explicit MergeKernel(std::shared_ptr<const LoadedKernel> kernel);

  const KernelBuild& build() const { return kernel_->build; }

  void run(const abi::MergeArguments& call, Executor& threads) const;

 private:
  using Entry = void(const abi::MergeArguments*, long long first, long long count);

  std::shared_ptr<const LoadedKernel> kernel_;
  Entry* entry_;
};

}  // namespace tilewright::cpu
