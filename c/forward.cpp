#include "c/handles.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"

namespace tilewright::capi {
namespace {

ForwardOptions options_of(const tw_call& call) {
  require_zero(call.reserved, "tw_call");
  auto options = common_options<ForwardOptions>(call);
  options.q_offset = call.q_offset;
  options.kv_offset = call.kv_offset;
  return options;
}

void forward_call(const Attention& attention, const tw_call& call) {
  const ForwardTensors tensors = tensors_of(call, attention.device());
  const ForwardOptions options = options_of(call);
  const Bindings& bindings = of(call.bindings);
  if (call.plan && call.mask) {
    throw Error(ErrorCode::usage, "the call has a plan and a block mask",
                "a packed call takes a plan, a dense one takes a mask");
  }
  if (call.plan) return attention.forward(tensors, call.plan->plan, bindings, options);
  if (call.mask) return attention.forward(tensors, call.mask->mask, bindings, options);
  attention.forward(tensors, bindings, options);
}

}  // namespace
}  // namespace tilewright::capi

extern "C" tw_status tw_forward(const tw_attention* attention, const tw_call* call,
                                tw_error** error) {
  using namespace tilewright::capi;
  return guarded(error, [&] {
    const Sized given(&required(call, "call"), "tw_call");
    forward_call(of(attention), *given);
  });
}
