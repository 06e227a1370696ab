#include <map>
#include <optional>
#include <string>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "attention.hpp"
#include "base/error.hpp"
#include "plan.hpp"

namespace nb = nanobind;

namespace tilewright::py {
namespace {

constexpr std::int64_t kWorkspaceAlignment = 256;

// "batch", "total_q", ...: absent ones keep their defaults.
PackedShape shape_of(const std::map<std::string, std::int64_t>& sizes) {
  PackedShape shape;
  const auto take = [&](const char* name, std::int64_t& size) {
    if (const auto found = sizes.find(name); found != sizes.end()) size = found->second;
  };
  take("batch", shape.batch);
  take("num_q_heads", shape.num_q_heads);
  take("num_kv_heads", shape.num_kv_heads);
  take("total_q", shape.total_q);
  take("total_kv", shape.total_kv);
  take("page_size", shape.page_size);
  take("max_q_len", shape.max_q_len);
  take("max_kv_len", shape.max_kv_len);
  return shape;
}

// Arrays by the names of Sequences; views into them.
Sequences sequences_of(const std::map<std::string, nb::object>& arrays, const Device& device) {
  Sequences sequences;
  for (const auto& [name, array] : arrays) {
    const TensorView view = view_of(array, name.c_str(), device);
    if (name == "q_begin") sequences.q_begin = view;
    if (name == "kv_begin") sequences.kv_begin = view;
    if (name == "kv_len") sequences.kv_len = view;
    if (name == "page_table") sequences.page_table = view;
    if (name == "page_begin") sequences.page_begin = view;
    if (name == "q_offset") sequences.q_offset = view;
    if (name == "kv_offset") sequences.kv_offset = view;
  }
  return sequences;
}

// Memory of the host at a multiple of 256.
TensorView aligned_memory(Tensor& memory, std::int64_t bytes) {
  memory = Tensor::zeros(u8, {bytes + kWorkspaceAlignment});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t past = address % kWorkspaceAlignment;
  auto* begin = static_cast<std::byte*>(memory.data()) + (past ? kWorkspaceAlignment - past : 0);
  return TensorView::contiguous(begin, u8, {bytes});
}

PlannedCalls make_plan(const Attention& attention, const std::map<std::string, std::int64_t>& sizes,
                       const std::map<std::string, nb::object>& arrays, const BoundArrays* bound,
                       nb::handle workspace, std::uintptr_t stream, bool count_absent) {
  const PackedShape shape = shape_of(sizes);
  const Sequences sequences = sequences_of(arrays, attention.device());
  Tensor memory;
  const TensorView room = workspace.is_none()
                              ? aligned_memory(memory, attention.workspace_size(shape))
                              : view_of(workspace, "workspace", attention.device(), Use::write);
  const PlanOptions options{.workspace = room,
                            .stream = stream_of(stream),
                            .count_absent = count_absent,
                            .backward = !attention.spec().gradients.empty()};
  std::vector<nb::object> owners;
  for (const auto& [name, array] : arrays) owners.push_back(array);
  if (!workspace.is_none()) owners.push_back(nb::borrow(workspace));
  std::optional<Plan> plan;
  {
    const nb::gil_scoped_release release;
    plan = attention.plan(shape, sequences, bindings_of(bound), options);
  }
  return {std::move(*plan), std::move(owners), std::move(memory)};
}

nb::object report(const PlannedCalls& self) {
  std::string text;
  {
    const nb::gil_scoped_release release;
    text = self.plan.report().text();
  }
  return nb::cast(text);
}

}  // namespace

void declare_plans(nb::class_<Attention>& attention, nb::module_& module) {
  nb::class_<PlannedCalls>(module, "Plan").def("report", &report);
  attention
      .def(
          "workspace_size",
          [](const Attention& self, const std::map<std::string, std::int64_t>& sizes) {
            return self.workspace_size(shape_of(sizes));
          },
          nb::arg("sizes"))
      .def(
          "packed_backward_workspace_size",
          [](const Attention& self, const std::map<std::string, std::int64_t>& sizes,
             const BoundArrays* bound, bool deterministic) {
            return self.workspace_size(shape_of(sizes), Pass::backward, bindings_of(bound),
                                       deterministic);
          },
          nb::arg("sizes"), nb::arg("bindings").none(), nb::arg("deterministic"))
      .def("plan", &make_plan, nb::arg("sizes"), nb::arg("arrays"), nb::arg("bindings").none(),
           nb::arg("workspace").none(), nb::arg("stream"), nb::arg("count_absent") = false)
      .def(
          "rebuild_plan",
          [](const Attention& self, PlannedCalls& plan, const BoundArrays* bound,
             std::uintptr_t stream) {
            const nb::gil_scoped_release release;
            self.rebuild(plan.plan, bindings_of(bound), stream_of(stream));
          },
          nb::arg("plan"), nb::arg("bindings").none(), nb::arg("stream"));
}

}  // namespace tilewright::py
