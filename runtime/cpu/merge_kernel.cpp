#include "runtime/cpu/merge_kernel.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/ceil_div.hpp"

namespace tilewright::cpu {

MergeKernel::MergeKernel(std::shared_ptr<const LoadedKernel> kernel)
    : kernel_(std::move(kernel)), entry_(kernel_->entry<Entry>("tilewright_merge")) {}

void MergeKernel::run(const abi::MergeArguments& call, Executor& threads) const {
  constexpr std::int64_t kRowsOfItem = 64;
  threads.parallel_for(ceil_div(call.all_rows, kRowsOfItem), [&](std::int64_t item, int) {
    const std::int64_t first = item * kRowsOfItem;
    entry_(&call, first, std::min<std::int64_t>(kRowsOfItem, call.all_rows - first));
  });
}

}  // namespace tilewright::cpu
