#include "runtime/cpu/quantise_kernel.hpp"

#include <utility>

#include "runtime/cpu/plan.hpp"

namespace tilewright::cpu {

QuantiseKernel::QuantiseKernel(std::shared_ptr<const LoadedKernel> kernel)
    : kernel_(std::move(kernel)), entry_(kernel_->entry<Entry>("tilewright_quantise")) {}

void QuantiseKernel::run(const QuantiseCall& call, const PlanState* plan,
                         const BindingArguments& bindings, Executor& threads) const {
  abi::QuantiseArguments arguments = call.arguments;
  if (plan != nullptr) arguments.sequences = PlanView(*plan).sequences;
  const abi::SnippetArguments snippet = snippet_arguments(bindings, call.shape);
  threads.parallel_for(call.blocks,
                       [&](std::int64_t block, int) { entry_(&arguments, &snippet, block); });
}

}  // namespace tilewright::cpu
