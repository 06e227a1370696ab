#include "c/handles.hpp"
#include "c/sized.hpp"
#include "c/tensor.hpp"

extern "C" tw_status tw_append(const tw_attention* attention, const tw_new_rows* rows,
                               tw_error** error) {
  using namespace tilewright;
  using namespace tilewright::capi;
  return guarded(error, [&] {
    const Attention& on = of(attention);
    const Device& device = on.device();
    const Sized given(&required(rows, "rows"), "tw_new_rows");
    const NewRows fresh = {.k_new = view_of(given->k_new, device, "k_new"),
                           .v_new = view_of(given->v_new, device, "v_new"),
                           .slots = optional_view_of(given->slots, device, "slots")};
    on.append(fresh, view_of(given->k, device, "k"), view_of(given->v, device, "v"),
              given->plan ? &given->plan->plan : nullptr, of(given->bindings), given->stream);
  });
}
