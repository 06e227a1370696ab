#include "runtime/cpu/append_kernel.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/ceil_div.hpp"
#include "runtime/cpu/plan.hpp"

namespace tilewright::cpu {

AppendKernel::AppendKernel(std::shared_ptr<const LoadedKernel> kernel)
    : kernel_(std::move(kernel)), entry_(kernel_->entry<Entry>("tilewright_append")) {}

void AppendKernel::run(abi::AppendArguments call, const PlanState* plan,
                       const BindingArguments& bindings, Executor& threads) const {
  if (plan == nullptr) {
    const abi::SnippetArguments snippet = snippet_arguments(
        bindings, {.num_q_heads = call.heads, .num_kv_heads = call.heads, .q_len = call.rows});
    constexpr std::int64_t kRows = abi::kAppendRowsOfBlock;
    threads.parallel_for(ceil_div(call.rows, kRows), [&](std::int64_t item, int) {
      const std::int64_t first = item * kRows;
      entry_(&call, &snippet, first, std::min<std::int64_t>(kRows, call.rows - first));
    });
    return;
  }
  const PlanView view(*plan);
  call.header = view.header;
  call.sequences = view.sequences;
  call.work = view.work;
  call.side = call.work_side = static_cast<int>(plan->geometry.block[0]);
  const abi::SnippetArguments snippet = packed_arguments(bindings, *plan);
  threads.parallel_for(view.header->rows,
                       [&](std::int64_t item, int) { entry_(&call, &snippet, item, 1); });
}

}  // namespace tilewright::cpu
