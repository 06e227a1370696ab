#include <optional>
#include <string>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "attention.hpp"
#include "plan.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

void merge(const Attention& attention, const std::vector<nb::object>& outs,
           const std::vector<nb::object>& lses, nb::handle out, nb::handle lse,
           std::uintptr_t stream) {
  const Device& device = attention.device();
  std::vector<Part> parts;
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const std::string place = '[' + std::to_string(i) + ']';
    parts.push_back({.out = view_of(outs[i], ("outs" + place).c_str(), device),
                     .lse = view_of(lses.at(i), ("lses" + place).c_str(), device)});
  }
  const TensorView joined = view_of(out, "out", device, Use::write);
  std::optional<TensorView> joined_lse;
  if (!lse.is_none()) joined_lse = view_of(lse, "lse", device, Use::write);
  const nb::gil_scoped_release release;
  attention.merge(parts, joined, joined_lse, stream_of(stream));
}

void append(const Attention& attention, nb::handle k_new, nb::handle v_new, nb::handle k_pool,
            nb::handle v_pool, nb::handle slots, const PlannedCalls* plan, const BoundArrays* bound,
            std::uintptr_t stream) {
  const Device& device = attention.device();
  NewRows rows{.k_new = view_of(k_new, "k_new", device), .v_new = view_of(v_new, "v_new", device)};
  if (!slots.is_none()) rows.slots = view_of(slots, "slots", device);
  const TensorView k = view_of(k_pool, "k_pool", device, Use::write);
  const TensorView v = view_of(v_pool, "v_pool", device, Use::write);
  const Bindings& bindings = bindings_of(bound);
  const nb::gil_scoped_release release;
  attention.append(rows, k, v, plan ? &plan->plan : nullptr, bindings, stream_of(stream));
}

// `operand`: "q", "k" or "v". `sizes`: of a dense call, [batch, num_q_heads, num_kv_heads, q_len,
// kv_len, q_offset, kv_offset]; empty: not given.
void quantise(const Attention& attention, nb::handle from, nb::handle to,
              const std::string& operand, const PlannedCalls* plan,
              const std::vector<std::int64_t>& sizes, const BoundArrays* bound,
              std::uintptr_t stream) {
  const Device& device = attention.device();
  const TensorView source = view_of(from, "array", device);
  const TensorView stored = view_of(to, "out", device, Use::write);
  const Operand which = operand == "q" ? Operand::q : operand == "k" ? Operand::k : Operand::v;
  const Bindings& bindings = bindings_of(bound);
  const nb::gil_scoped_release release;
  if (sizes.empty()) {
    attention.quantise(source, stored, plan ? &plan->plan : nullptr, which, bindings,
                       stream_of(stream));
  } else {
    const Shape shape = {sizes.at(0), sizes.at(1), sizes.at(2), sizes.at(3),
                         sizes.at(4), sizes.at(5), sizes.at(6)};
    attention.quantise(source, stored, shape, which, bindings, stream_of(stream));
  }
}

}  // namespace

void declare_rows(nb::class_<Attention>& attention) {
  attention
      .def("merge", &merge, nb::arg("outs"), nb::arg("lses"), nb::arg("out"), nb::arg("lse").none(),
           nb::arg("stream"))
      .def("append", &append, nb::arg("k_new"), nb::arg("v_new"), nb::arg("k_pool"),
           nb::arg("v_pool"), nb::arg("slots").none(), nb::arg("plan").none(),
           nb::arg("bindings").none(), nb::arg("stream"))
      .def("quantise", &quantise, nb::arg("array"), nb::arg("out"), nb::arg("operand"),
           nb::arg("plan").none(), nb::arg("sizes"), nb::arg("bindings").none(), nb::arg("stream"));
}

}  // namespace tilewright::py
