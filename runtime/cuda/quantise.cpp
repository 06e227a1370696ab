#include "runtime/cuda/quantise.hpp"

#include <cstdint>
#include <limits>

#include "base/error.hpp"
#include "runtime/cuda/arguments.hpp"
#include "runtime/cuda/plan.hpp"

namespace tilewright::cuda {

void launch_quantise(const Driver& driver, const Kernel& kernel, const QuantiseCall& call,
                     const PlanState* plan, bool is_paged, const Bindings& bindings,
                     Stream stream) {
  if (call.blocks > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorCode::tensor, "the tensor has more rows than a launch takes",
                "quantise parts of it");
  }
  abi::QuantiseArguments arguments = call.arguments;
  if (plan != nullptr) arguments.sequences = plan_arguments(*plan).sequences;
  SnippetParameter snippet =
      is_paged ? SnippetParameter(bindings.cuda_arguments(), call.shape, arguments.pages)
               : SnippetParameter(bindings.cuda_arguments(), call.shape);
  void* parameters[] = {&arguments, snippet.data()};
  driver.check(
      driver.functions().launch(kernel.function, static_cast<unsigned>(call.blocks), 1, 1,
                                abi::kQuantiseThreads, 1, 1, 0, stream, parameters, nullptr),
      "launching quantise");
}

}  // namespace tilewright::cuda
