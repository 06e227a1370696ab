#include <string>
#include <vector>

#include "c/handles.hpp"
#include "c/tensor.hpp"

extern "C" tw_status tw_merge(const tw_attention* attention, const tw_part* parts,
                              size_t part_count, const tw_tensor* out, const tw_tensor* lse,
                              void* stream, tw_error** error) {
  using namespace tilewright;
  using namespace tilewright::capi;
  return guarded(error, [&] {
    const Attention& on = of(attention);
    const Device& device = on.device();
    if (part_count > 0) required(parts, "parts");
    std::vector<Part> given;
    for (std::size_t i = 0; i < part_count; ++i) {
      const std::string name = "parts[" + std::to_string(i) + "]";
      given.push_back({.out = view_of(parts[i].out, device, (name + ".out").c_str()),
                       .lse = view_of(parts[i].lse, device, (name + ".lse").c_str())});
    }
    const TensorView to = view_of(required(out, "out"), device, "out");
    std::optional<TensorView> with_lse;
    if (lse) with_lse = optional_view_of(*lse, device, "lse");
    on.merge(given, to, with_lse, stream);
  });
}
