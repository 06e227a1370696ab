#include <string>

#include "c/handles.hpp"
#include "c/shape.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"

namespace {

tilewright::Operand operand_of(int32_t operand) {
  switch (operand) {
    case TW_OPERAND_Q:
      return tilewright::Operand::q;
    case TW_OPERAND_K:
      return tilewright::Operand::k;
    case TW_OPERAND_V:
      return tilewright::Operand::v;
    default:
      break;
  }
  throw tilewright::Error(tilewright::ErrorCode::usage, "operand is " + std::to_string(operand),
                          "give TW_OPERAND_Q (0), TW_OPERAND_K (1) or TW_OPERAND_V (2)");
}

}  // namespace

extern "C" tw_status tw_quantise(const tw_attention* attention, const tw_quantised* quantised,
                                 tw_error** error) {
  using namespace tilewright;
  using namespace tilewright::capi;
  return guarded(error, [&] {
    const Attention& on = of(attention);
    const Device& device = on.device();
    const Sized given(&required(quantised, "quantised"), "tw_quantised");
    require_zero(given->reserved, "tw_quantised");
    const Operand which = operand_of(given->operand);
    const TensorView from = view_of(given->from, device, "from");
    const TensorView to = view_of(given->to, device, "to");
    const Bindings& bindings = of(given->bindings);
    if (given->plan && given->shape) {
      throw Error(ErrorCode::usage, "quantise was given a plan and a shape",
                  "a packed call has a plan, a dense one a shape");
    }
    if (given->shape) {
      on.quantise(from, to, shape_of(given->shape), which, bindings, given->stream);
    } else {
      on.quantise(from, to, given->plan ? &given->plan->plan : nullptr, which, bindings,
                  given->stream);
    }
  });
}
