#include <string>

#include "base/error.hpp"
#include "c/handles.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"

namespace tilewright::capi {
namespace {

BackwardOptions options_of(const tw_backward_call& call) {
  BackwardOptions options{.q_offset = call.q_offset,
                          .kv_offset = call.kv_offset,
                          .deterministic = call.deterministic != 0,
                          .stream = call.stream};
  if (call.has_scale) options.scale = call.scale;
  if (call.workspace) {
    options.workspace = TensorView::contiguous(call.workspace, DType::u8, {call.workspace_bytes});
  }
  return options;
}

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

void backward_call(const Attention& attention, const tw_backward_call& call) {
  const Device& device = attention.device();
  const BackwardTensors tensors{.q = view_of(call.q, device, "q"),
                                .k = view_of(call.k, device, "k"),
                                .v = view_of(call.v, device, "v"),
                                .out = view_of(call.out, device, "out"),
                                .lse = view_of(call.lse, device, "lse"),
                                .dout = view_of(call.dout, device, "dout"),
                                .dlse = optional_view_of(call.dlse, device, "dlse"),
                                .dq = optional_view_of(call.dq, device, "dq"),
                                .dk = optional_view_of(call.dk, device, "dk"),
                                .dv = optional_view_of(call.dv, device, "dv")};
  const GradientBuffers gradients = gradients_of(call, device);
  const BackwardOptions options = options_of(call);
  const Bindings& bindings = of(call.bindings);
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

extern "C" tw_status tw_backward(const tw_attention* attention, const tw_backward_call* call,
                                 tw_error** error) {
  using namespace tilewright::capi;
  return guarded(error, [&] {
    const Sized given(&required(call, "call"), "tw_backward_call");
    backward_call(of(attention), *given);
  });
}
