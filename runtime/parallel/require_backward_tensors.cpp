#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "generator/spec/gradients.hpp"
#include "runtime/call/named_gradients.hpp"
#include "runtime/call/tensor_role.hpp"
#include "runtime/parallel/backward.hpp"
#include "runtime/parallel/tensor_checks.hpp"

namespace tilewright::parallel {
namespace {

// What a call may be given of q, k and v.
struct GivenGradient {
  std::string_view of;
  std::string_view name;
  const std::optional<TensorView>& view;
  TensorRole role;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t width;
};

void require_named(const Spec& spec, const GivenGradient& given) {
  const bool is_named = has_gradient(spec, given.of);
  if (is_named == given.view.has_value()) return;
  if (is_named) {
    throw Error(
        ErrorCode::tensor,
        fmt::format("{} is missing, but the spec's gradients name \"{}\"", given.name, given.of),
        fmt::format("give a tensor in the shape of {}", given.of));
  }
  throw Error(ErrorCode::tensor,
              fmt::format("{} was given, but the spec's gradients do not name \"{}\"", given.name,
                          given.of),
              fmt::format("leave it out, or add \"{}\" to the spec's gradients", given.of));
}

std::array<GivenGradient, 3> given_gradients(const Spec& spec, const BackwardTensors& tensors,
                                             const ContextPlanState& plan) {
  const Shape& whole = plan.whole;
  const Layout kv = spec.key_value_layout();
  const DType kv_dtype = spec.key_value_dtype();
  return {{{"q",
            "dq",
            tensors.dq,
            {"dq", spec.dtype, spec.layout, "num_q_heads", plan.q_rows_name(), "head_dim"},
            whole.num_q_heads,
            plan.q_rows(),
            spec.head_dim},
           {"k",
            "dk",
            tensors.dk,
            {"dk", kv_dtype, kv, "num_kv_heads", plan.kv_rows_name(), "head_dim"},
            whole.num_kv_heads,
            plan.kv_rows(),
            spec.head_dim},
           {"v",
            "dv",
            tensors.dv,
            {"dv", kv_dtype, kv, "num_kv_heads", plan.kv_rows_name(), "v_head_dim"},
            whole.num_kv_heads,
            plan.kv_rows(),
            spec.value_head_dim()}}};
}

// The plan has room for gradients of the tensors that it was made with.
void require_planned(const Spec& spec, const Bindings& bindings, const ContextPlanState& plan) {
  for (const NamedGradient& planned : plan.gradients->buffers.named) {
    const auto buffer = spec.buffers.find(planned.name);
    if (buffer == spec.buffers.end()) continue;
    const auto index = std::distance(spec.buffers.begin(), buffer);
    const TensorView& bound = bindings.buffers()[static_cast<std::size_t>(index)];
    const auto extents = bound.extents();
    if (std::equal(extents.begin(), extents.end(), planned.extents.begin(),
                   planned.extents.end())) {
      continue;
    }
    throw Error(ErrorCode::tensor,
                fmt::format("buffer \"{}\" is {}, and the plan was made with one of [{}]",
                            planned.name, bound.describe(), fmt::join(planned.extents, ", ")),
                "make another plan with these bindings");
  }
}

}  // namespace

void require_backward_tensors(const Spec& spec, const BackwardTensors& tensors,
                              const ContextPlanState& plan, const Bindings& bindings,
                              const GradientBuffers& gradients, const ContextCallOptions& options) {
  require_call_tensors(spec, {tensors.q, tensors.k, tensors.v, tensors.out}, plan);
  const TensorRole dout{"dout",        spec.output_dtype(), spec.layout,
                        "num_q_heads", plan.q_rows_name(),  "v_head_dim"};
  require_fit({dout, plan.whole.num_q_heads, plan.q_rows(), spec.value_head_dim()}, tensors.dout,
              plan.whole.batch);
  require_row_numbers("lse", tensors.lse, plan);
  if (tensors.dlse) require_row_numbers("dlse", *tensors.dlse, plan);
  require_room(options.workspace, plan.gradients->workspace_bytes(options.deterministic));
  bindings.check(spec, plan.bound_shape());
  require_planned(spec, bindings, plan);

  std::vector<std::pair<std::string, TensorView>> others = {
      {"q", tensors.q},     {"k", tensors.k},     {"v", tensors.v},
      {"out", tensors.out}, {"lse", tensors.lse}, {"dout", tensors.dout}};
  if (tensors.dlse) others.emplace_back("dlse", *tensors.dlse);
  std::size_t buffer = 0;
  for (const auto& [name, declared] : spec.buffers) {
    others.emplace_back(fmt::format("buffer \"{}\"", name), bindings.buffers()[buffer++]);
  }
  const auto require_written = [&](std::string_view name, const TensorView& view) {
    for (const auto& [other, read] : others) require_apart(name, view, other, read);
    others.emplace_back(std::string(name), view);
  };
  for (const GivenGradient& given : given_gradients(spec, tensors, plan)) {
    require_named(spec, given);
    if (!given.view) continue;
    require_fit({given.role, given.heads, given.rows, given.width}, *given.view, plan.whole.batch);
    require_own_elements(given.role, *given.view);
    require_written(given.name, *given.view);
  }
  std::size_t gradient = 0;
  const std::vector<TensorView> named = named_gradients(spec, bindings, gradients);
  for (const std::string& name : gradient_names(spec)) {
    require_written("d_" + name, named[gradient++]);
  }
  require_written("workspace", options.workspace);
}

}  // namespace tilewright::parallel
