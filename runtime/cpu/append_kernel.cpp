#include "runtime/cpu/append_kernel.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/ceil_div.hpp"
#include "runtime/cpu/plan.hpp"

namespace tilewright::cpu {

AppendKernel::AppendKernel(std::shared_ptr<const LoadedKernel> kernel)
    : kernel_(std::move(kernel)), entry_(kernel_->entry<Entry>("tilewright_append")) {}

void AppendKernel::run(abi::AppendArguments call, const PlanState* plan, Executor& threads) const {
  if (plan == nullptr) {
    constexpr std::int64_t kRows = abi::kAppendRowsOfBlock;
    threads.parallel_for(ceil_div(call.rows, kRows), [&](std::int64_t item, int) {
      const std::int64_t first = item * kRows;
      entry_(&call, first, std::min<std::int64_t>(kRows, call.rows - first));
    });
    return;
  }
  const PlanView view(*plan);
  call.header = view.header;
  call.sequences = view.sequences;
  call.work = view.work;
  call.side = call.work_side = static_cast<int>(plan->geometry.block[0]);
  threads.parallel_for(view.header->rows, [&](std::int64_t item, int) { entry_(&call, item, 1); });
}

}  // namespace tilewright::cpu
