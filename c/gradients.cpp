#include "c/gradients.hpp"

#include <string>

#include "base/error.hpp"
#include "c/handles.hpp"
#include "c/tensor.hpp"

namespace tilewright::capi {

GradientBuffers gradients_of(const tw_backward_call& call, const Device& device) {
  GradientBuffers gradients;
  if (call.gradient_count > 0) required(call.gradients, "gradients");
  for (std::size_t i = 0; i < call.gradient_count; ++i) {
    const std::string name = &required(call.gradients[i].name, "a gradient's name");
    const TensorView view = view_of(call.gradients[i].tensor, device, ("d_" + name).c_str());
    if (gradients.emplace(name, view).second) continue;
    throw Error(ErrorCode::usage, "the gradient of \"" + name + "\" was given twice",
                "give one tensor for it");
  }
  return gradients;
}

}  // namespace tilewright::capi
