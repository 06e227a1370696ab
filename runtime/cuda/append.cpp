#include "runtime/cuda/append.hpp"

#include <limits>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "generator/snippet/append_scales.hpp"
#include "runtime/cuda/plan.hpp"

namespace tilewright::cuda {
namespace {

// Completes the arguments of a call whose rows a plan says. Returns its blocks of threads.
std::int64_t take_plan(const PlanState& plan, std::int64_t work_side, abi::AppendArguments& call) {
  const abi::cuda::PlanArguments planned = plan_arguments(plan);
  call.header = planned.header;
  call.sequences = planned.sequences;
  call.work = planned.work;
  call.side = static_cast<int>(plan.geometry.block[0]);
  call.work_side = static_cast<int>(work_side);
  call.parts_of_work = static_cast<int>(ceil_div(work_side, abi::kAppendRowsOfBlock));
  return std::int64_t{plan.geometry.rows} * call.parts_of_work;
}

}  // namespace

void launch_append(const LaunchScope& on, abi::AppendArguments call, const PlanState* plan,
                   const Bindings& bindings, tilewright::Stream stream) {
  // The kernel: append.cu.jinja.
  const Kernel& kernel = on.kernels.kernel(kAppend, "tilewright_append");

  // The grid, and the arguments that the plan says.
  const std::int64_t blocks = plan != nullptr ? take_plan(*plan, on.facts.plan_work_side, call)
                                              : ceil_div(call.rows, abi::kAppendRowsOfBlock);
  if (blocks > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::tensor, "the call has more new rows than a launch takes",
                "split the batch");
  }
  const LaunchConfig config = {.blocks = blocks,
                               .threads = abi::kAppendThreads,
                               .stream = stream,
                               .doing = "launching append"};

  // The launch: kernels without k_scale and v_scale take no snippet.
  if (!append_divides(on.spec)) return launch_kernel(on.driver, kernel, config, call);
  const Shape shape =
      plan != nullptr
          ? shape_of_totals(plan->shape)
          : Shape{.num_q_heads = call.heads, .num_kv_heads = call.heads, .q_len = call.rows};
  SnippetParameter snippet(bindings.cuda_arguments(), shape, call.pages);
  launch_kernel(on.driver, kernel, config, call, snippet);
}

}  // namespace tilewright::cuda
