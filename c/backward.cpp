#include <string>

#include "base/error.hpp"
#include "c/gradients.hpp"
#include "c/handles.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"

namespace tilewright::capi {
namespace {

BackwardOptions options_of(const tw_backward_call& call) {
  auto options = common_options<BackwardOptions>(call);
  options.q_offset = call.q_offset;
  options.kv_offset = call.kv_offset;
  options.deterministic = call.deterministic != 0;
  return options;
}

void backward_call(const Attention& attention, const tw_backward_call& call) {
  const Device& device = attention.device();
  const BackwardTensors tensors = tensors_of(call, device);
  const GradientBuffers gradients = gradients_of(call, device);
  const BackwardOptions options = options_of(call);
  const Bindings& bindings = of(call.bindings);
  if (call.plan && call.mask) {
    throw Error(ErrorCode::usage, "both mask and plan are given",
                "packed calls take a plan alone, dense ones a mask");
  }
  if (call.plan) {
    return attention.backward(tensors, call.plan->plan, bindings, gradients, options);
  }
  if (call.mask) {
    return attention.backward(tensors, call.mask->mask, bindings, gradients, options);
  }
  attention.backward(tensors, bindings, gradients, options);
}

}  // namespace
}  // namespace tilewright::capi

extern "C" tw_status tw_backward_workspace_size(const tw_attention* attention,
                                                const tw_shape* shape, const tw_bindings* bindings,
                                                int32_t deterministic, int64_t* bytes,
                                                tw_error** error) {
  using namespace tilewright;
  using namespace tilewright::capi;
  return guarded(error, [&] {
    required(bytes, "bytes") = of(attention).workspace_size(shape_of(shape), Pass::backward,
                                                            of(bindings), deterministic != 0);
  });
}

extern "C" tw_status tw_packed_backward_workspace_size(const tw_attention* attention,
                                                       const tw_packed_shape* shape,
                                                       const tw_bindings* bindings,
                                                       int32_t deterministic, int64_t* bytes,
                                                       tw_error** error) {
  using namespace tilewright;
  using namespace tilewright::capi;
  return guarded(error, [&] {
    required(bytes, "bytes") = of(attention).workspace_size(shape_of(shape), Pass::backward,
                                                            of(bindings), deterministic != 0);
  });
}

extern "C" tw_status tw_backward(const tw_attention* attention, const tw_backward_call* call,
                                 tw_error** error) {
  using namespace tilewright::capi;
  return guarded(error, [&] {
    const Sized given(&required(call, "call"), "tw_backward_call");
    backward_call(of(attention), *given);
  });
}
