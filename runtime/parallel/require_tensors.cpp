#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/call/tensor_role.hpp"
#include "runtime/parallel/forward.hpp"
#include "runtime/parallel/tensor_checks.hpp"

namespace tilewright::parallel {
namespace {

void require_lse(bool is_wanted, const std::optional<TensorView>& lse,
                 const ContextPlanState& plan) {
  if (!lse && !is_wanted) return;
  if (!is_wanted) {
    throw Error(ErrorCode::tensor, "lse was given, but the spec's outputs do not name it",
                R"(write "outputs": ["out", "lse"] in the spec, or leave lse out of the call)");
  }
  if (!lse) {
    throw Error(ErrorCode::tensor, "lse is missing: the spec's outputs name it",
                plan.packed ? fmt::format("wanted: f32 [{}, {}], contiguous",
                                          plan.whole.num_q_heads, plan.q_rows())
                            : fmt::format("wanted: f32 [{}, {}, {}], contiguous", plan.whole.batch,
                                          plan.whole.num_q_heads, plan.q_rows()));
  }
  require_row_numbers("lse", *lse, plan);
}

// Several calls read q, k and v, and the first of them writes out.
void require_written_apart(const ForwardTensors& tensors, const TensorView& workspace) {
  const std::array<std::pair<std::string_view, const TensorView*>, 3> read = {
      {{"q", &tensors.q}, {"k", &tensors.k}, {"v", &tensors.v}}};
  for (const auto& [name, view] : read) {
    require_apart("out", tensors.out, name, *view);
    if (tensors.lse) require_apart("lse", *tensors.lse, name, *view);
    require_apart("workspace", workspace, name, *view);
  }
  require_apart("workspace", workspace, "out", tensors.out);
  if (!tensors.lse) return;
  require_apart("lse", *tensors.lse, "out", tensors.out);
  require_apart("workspace", workspace, "lse", *tensors.lse);
}

}  // namespace

void require_tensors(const Spec& spec, bool wants_lse, const ForwardTensors& tensors,
                     const ContextPlanState& plan, const TensorView& workspace) {
  if (tensors.k_new || tensors.v_new) {
    throw Error(ErrorCode::tensor, "k_new and v_new belong to specs with kv_new",
                "leave them out of the call");
  }
  require_call_tensors(spec, {tensors.q, tensors.k, tensors.v, tensors.out}, plan);
  require_own_elements(
      {"out", spec.output_dtype(), spec.layout, "num_q_heads", "q_len", "v_head_dim"}, tensors.out);
  require_lse(wants_lse, tensors.lse, plan);
  require_room(workspace, plan.schedule.workspace_bytes);
  require_written_apart(tensors, workspace);
}

}  // namespace tilewright::parallel
