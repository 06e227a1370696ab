#include "attention.hpp"

#include <map>
#include <optional>
#include <string>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "generator/spec/spec_json.hpp"
#include "plan.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

void construct(Attention* self, const std::string& spec, const std::string& file,
               const std::string& device, bool takes_block_mask, bool masks_only, bool positions,
               bool merge, bool append, bool decode, bool quantise) {
  const nb::gil_scoped_release release;
  new (self) Attention(spec_from_json(spec, file), {.device = Device::parse(device),
                                                    .takes_block_mask = takes_block_mask,
                                                    .masks_only = masks_only,
                                                    .positions = positions,
                                                    .merge = merge,
                                                    .append = append,
                                                    .decode = decode,
                                                    .quantise = quantise});
}

nb::list builds(const Attention& attention) {
  nb::list list;
  for (const KernelBuild& build : attention.builds()) {
    nb::dict entry;
    entry["kernel"] = build.kernel;
    entry["source"] = build.source;
    entry["render_ms"] = build.render_ms;
    entry["compile_ms"] = build.compile_ms;
    entry["load_ms"] = build.load_ms;
    entry["bytes"] = build.bytes;
    entry["names"] = build.names;
    list.append(entry);
  }
  return list;
}

// `owned`: the result keeps the arrays alive.
BoundArrays bind(const Attention& attention, const std::map<std::string, nb::object>& buffers,
                 const std::map<std::string, double>& scalars, bool owned) {
  BoundArrays bound;
  SnippetInputs inputs{.scalars = scalars};
  for (const auto& [name, array] : buffers) {
    inputs.buffers.emplace(name, view_of(array, name.c_str(), attention.device()));
    if (owned) bound.arrays.push_back(array);
  }
  bound.bindings = attention.bind(inputs);
  return bound;
}

void forward(const Attention& attention, nb::handle q, nb::handle k, nb::handle v, nb::handle out,
             nb::handle lse, const BlockMask* mask, const PlannedCalls* plan,
             const BoundArrays* bound, std::optional<double> scale, std::int64_t q_offset,
             std::int64_t kv_offset, std::uintptr_t stream, nb::handle k_new, nb::handle v_new,
             nb::handle workspace, nb::handle max_scores, nb::handle weights) {
  const Device& device = attention.device();
  ForwardTensors tensors{.q = view_of(q, "q", device),
                         .k = view_of(k, "k", device),
                         .v = view_of(v, "v", device),
                         .out = view_of(out, "out", device, Use::write)};
  if (!lse.is_none()) tensors.lse = view_of(lse, "lse", device, Use::write);
  if (!k_new.is_none()) tensors.k_new = view_of(k_new, "k_new", device);
  if (!v_new.is_none()) tensors.v_new = view_of(v_new, "v_new", device);
  if (!max_scores.is_none()) {
    tensors.max_scores = view_of(max_scores, "max_scores", device, Use::write);
  }
  if (!weights.is_none()) tensors.weights = view_of(weights, "weights", device, Use::write);
  ForwardOptions options{q_offset, kv_offset, scale, stream_of(stream)};
  if (!workspace.is_none()) {
    options.workspace = view_of(workspace, "workspace", device, Use::write);
  }
  const Bindings& bindings = bindings_of(bound);
  const nb::gil_scoped_release release;
  if (plan) {
    attention.forward(tensors, plan->plan, bindings, options);
  } else if (mask) {
    attention.forward(tensors, *mask, bindings, options);
  } else {
    attention.forward(tensors, bindings, options);
  }
}

std::int64_t dense_workspace_size(const Attention& attention, std::int64_t batch,
                                  std::int64_t num_q_heads, std::int64_t num_kv_heads,
                                  std::int64_t q_len, std::int64_t kv_len) {
  return attention.workspace_size({.batch = batch,
                                   .num_q_heads = num_q_heads,
                                   .num_kv_heads = num_kv_heads,
                                   .q_len = q_len,
                                   .kv_len = kv_len});
}

}  // namespace

void declare_attention(nb::module_& module) {
  nb::class_<BoundArrays>(module, "Bindings");
  nb::class_<Attention> attention(module, "Attention");
  attention
      .def("__init__", &construct, nb::arg("spec"), nb::arg("file"), nb::arg("device"),
           nb::arg("takes_block_mask") = false, nb::arg("masks_only") = false,
           nb::arg("positions") = false, nb::arg("merge") = false, nb::arg("append") = false,
           nb::arg("decode") = false, nb::arg("quantise") = false)
      .def_prop_ro("spec", [](const Attention& self) { return to_json(self.spec()); })
      .def_prop_ro("device", [](const Attention& self) { return self.device().name(); })
      .def_prop_ro("target", [](const Attention& self) { return self.target().name(); })
      .def("builds", &builds)
      .def("bind", &bind, nb::arg("buffers"), nb::arg("scalars"), nb::arg("owned") = true)
      .def("forward", &forward, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("out"),
           nb::arg("lse").none(), nb::arg("mask").none(), nb::arg("plan").none(),
           nb::arg("bindings").none(), nb::arg("scale").none(), nb::arg("q_offset"),
           nb::arg("kv_offset"), nb::arg("stream"), nb::arg("k_new").none(),
           nb::arg("v_new").none(), nb::arg("workspace").none(),
           nb::arg("max_scores").none() = nb::none(), nb::arg("weights").none() = nb::none())
      .def("dense_workspace_size", &dense_workspace_size, nb::arg("batch"), nb::arg("num_q_heads"),
           nb::arg("num_kv_heads"), nb::arg("q_len"), nb::arg("kv_len"));
  declare_masks(attention, module);
  declare_plans(attention, module);
  declare_backward(attention);
  declare_rows(attention);
}

}  // namespace tilewright::py
