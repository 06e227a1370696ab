#include "runtime/cuda/quantise.hpp"

#include <cstdint>
#include <limits>

#include "base/error.hpp"
#include "runtime/cuda/plan.hpp"

namespace tilewright::cuda {

void launch_quantise(const LaunchScope& on, const QuantiseCall& call, const PlanState* plan,
                     const Bindings& bindings, tilewright::Stream stream) {
  // The kernel: quantise.cu.jinja.
  const Kernel& kernel = on.kernels.kernel(kQuantise, "tilewright_quantise");

  // The grid.
  if (call.blocks > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::tensor, "the tensor has more rows than a launch takes",
                "quantise parts of it");
  }
  const LaunchConfig config = {.blocks = call.blocks,
                               .threads = abi::kQuantiseThreads,
                               .stream = stream,
                               .doing = "launching quantise"};

  // The arguments.
  abi::QuantiseArguments arguments = call.arguments;
  if (plan != nullptr) arguments.sequences = plan_arguments(*plan).sequences;
  SnippetParameter snippet =
      on.spec.is_paged() ? SnippetParameter(bindings.cuda_arguments(), call.shape, arguments.pages)
                         : SnippetParameter(bindings.cuda_arguments(), call.shape);

  // The launch.
  launch_kernel(on.driver, kernel, config, arguments, snippet);
}

}  // namespace tilewright::cuda
