#include <map>
#include <optional>
#include <string>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "attention.hpp"
#include "plan.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

using Arrays = std::map<std::string, nb::object>;

// By the names that the command line gives them: "dq", "dk", "dv", and "d_slopes" of a buffer or
// scalar "slopes".
void give_gradients(const Arrays& gradients, const Device& device, BackwardTensors& tensors,
                    GradientBuffers& named) {
  for (const auto& [name, array] : gradients) {
    const TensorView view = view_of(array, name.c_str(), device, Use::write);
    if (name == "dq") {
      tensors.dq = view;
    } else if (name == "dk") {
      tensors.dk = view;
    } else if (name == "dv") {
      tensors.dv = view;
    } else {
      named.emplace(name.substr(2), view);
    }
  }
}

void backward(const Attention& attention, const Arrays& inputs, const Arrays& gradients,
              const BlockMask* mask, const PlannedCalls* plan, const BoundArrays* bound,
              std::optional<double> scale, std::int64_t q_offset, std::int64_t kv_offset,
              std::uintptr_t stream, nb::handle workspace, bool deterministic) {
  const Device& device = attention.device();
  const auto view = [&](const char* name) { return view_of(inputs.at(name), name, device); };
  BackwardTensors tensors{.q = view("q"),
                          .k = view("k"),
                          .v = view("v"),
                          .out = view("out"),
                          .lse = view("lse"),
                          .dout = view("dout")};
  if (inputs.contains("dlse")) tensors.dlse = view("dlse");
  GradientBuffers named;
  give_gradients(gradients, device, tensors, named);
  BackwardOptions options{.q_offset = q_offset,
                          .kv_offset = kv_offset,
                          .scale = scale,
                          .deterministic = deterministic,
                          .stream = stream_of(stream)};
  if (!workspace.is_none()) {
    options.workspace = view_of(workspace, "workspace", device, Use::write);
  }
  const Bindings& bindings = bindings_of(bound);
  const nb::gil_scoped_release release;
  if (plan) return attention.backward(tensors, plan->plan, bindings, named, options);
  if (!mask) return attention.backward(tensors, bindings, named, options);
  if (!mask->has_transposed()) mask->transposed();
  attention.backward(tensors, *mask, bindings, named, options);
}

std::int64_t workspace_size(const Attention& attention, std::int64_t batch,
                            std::int64_t num_q_heads, std::int64_t num_kv_heads, std::int64_t q_len,
                            std::int64_t kv_len, const BoundArrays* bound, bool deterministic) {
  const Shape shape{batch, num_q_heads, num_kv_heads, q_len, kv_len};
  return attention.workspace_size(shape, Pass::backward, bindings_of(bound), deterministic);
}

}  // namespace

void declare_backward(nb::class_<Attention>& attention) {
  attention.def("backward", &backward, nb::arg("inputs"), nb::arg("gradients"),
                nb::arg("mask").none(), nb::arg("plan").none(), nb::arg("bindings").none(),
                nb::arg("scale").none(), nb::arg("q_offset"), nb::arg("kv_offset"),
                nb::arg("stream"), nb::arg("workspace").none(), nb::arg("deterministic"));
  attention.def("backward_workspace_size", &workspace_size, nb::arg("batch"),
                nb::arg("num_q_heads"), nb::arg("num_kv_heads"), nb::arg("q_len"),
                nb::arg("kv_len"), nb::arg("bindings").none(), nb::arg("deterministic"));
}

}  // namespace tilewright::py
