#include "runtime/cuda/append.hpp"

#include <limits>
#include <optional>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "runtime/cuda/arguments.hpp"
#include "runtime/cuda/plan.hpp"

namespace tilewright::cuda {

void launch_append(const Driver& driver, const Kernel& kernel, abi::AppendArguments call,
                   const PlanState* plan, std::int64_t work_side, const Bindings* bindings,
                   Stream stream) {
  std::int64_t blocks = ceil_div(call.rows, abi::kAppendRowsOfBlock);
  if (plan != nullptr) {
    const abi::cuda::PlanArguments planned = plan_arguments(*plan);
    call.header = planned.header;
    call.sequences = planned.sequences;
    call.work = planned.work;
    call.side = static_cast<int>(plan->geometry.block[0]);
    call.work_side = static_cast<int>(work_side);
    call.parts_of_work = static_cast<int>(ceil_div(work_side, abi::kAppendRowsOfBlock));
    blocks = std::int64_t{plan->geometry.rows} * call.parts_of_work;
  }
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::tensor, "the call has more new rows than a launch takes",
                "split the batch");
  }
  const Shape shape =
      plan != nullptr
          ? shape_of_totals(plan->shape)
          : Shape{.num_q_heads = call.heads, .num_kv_heads = call.heads, .q_len = call.rows};
  std::optional<SnippetParameter> snippet;
  if (bindings != nullptr) snippet.emplace(bindings->cuda_arguments(), shape, call.pages);
  void* parameters[] = {&call, snippet ? snippet->data() : nullptr};
  driver.check(driver.functions().launch(kernel.function, static_cast<unsigned>(blocks), 1, 1,
                                         abi::kAppendThreads, 1, 1, 0, stream, parameters, nullptr),
               "launching append");
}

}  // namespace tilewright::cuda
