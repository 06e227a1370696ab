#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/call/tensor_role.hpp"
#include "runtime/parallel/forward.hpp"
#include "runtime/parallel/views.hpp"

namespace tilewright::parallel {
namespace {

// What a tensor has to have.
struct WantedTensor {
  TensorRole role;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t width;
};

void require_fit(const WantedTensor& wanted, const TensorView& view, std::int64_t batch) {
  const TensorRole& role = wanted.role;
  const TensorSizes sizes = sizes_of(role, view);
  require_size(role, view, role.width, sizes.width, wanted.width,
               fmt::format("the spec's {}", role.width));
  require_size(role, view, "batch", sizes.batch, batch, "that of the plan");
  require_size(role, view, role.heads, sizes.heads, wanted.heads, "that of the plan");
  require_size(role, view, role.rows, sizes.rows, wanted.rows,
               "that of this rank's shards in the plan");
}

void require_lse(bool is_wanted, const std::optional<TensorView>& lse, const Shape& whole,
                 std::int64_t rows) {
  if (!lse && !is_wanted) return;
  if (!is_wanted) {
    throw Error(ErrorCode::tensor, "lse was given, but the spec's outputs do not name it",
                R"(write "outputs": ["out", "lse"] in the spec, or leave lse out of the call)");
  }
  const std::array wanted = {whole.batch, whole.num_q_heads, rows};
  const std::string hint =
      fmt::format("wanted: f32 [{}, {}, {}], contiguous", wanted[0], wanted[1], wanted[2]);
  if (!lse) throw Error(ErrorCode::tensor, "lse is missing: the spec's outputs name it", hint);
  const std::span<const std::int64_t> given = lse->extents();
  if (lse->dtype != DType::f32 || !lse->is_contiguous() ||
      !std::equal(given.begin(), given.end(), wanted.begin(), wanted.end())) {
    throw Error(ErrorCode::tensor, "lse does not fit: given " + lse->describe(), hint);
  }
  if (const std::string fault = lse->fault(); !fault.empty()) {
    throw Error(ErrorCode::tensor, "lse " + fault, hint);
  }
}

void require_runs(std::string_view name, const TensorView& view, Layout layout) {
  if (has_runs(view, layout)) return;
  throw Error(
      ErrorCode::tensor,
      fmt::format("{} is sent to other ranks, and its rows are not dense within a {}: {}", name,
                  layout == Layout::bhsd ? "head" : "batch", view.describe()),
      layout == Layout::bhsd
          ? R"(copy it, or, if heads lie within rows, write "kv_layout": "bshd" in the spec)"
          : R"(copy it, or, if rows lie within heads, write "kv_layout": "bhsd" in the spec)");
}

// Several calls read q, k and v, and the first of them writes out.
void require_apart(const ForwardTensors& tensors, const TensorView& workspace) {
  const auto refuse_overlap = [](std::string_view a, const TensorView& x, std::string_view b,
                                 const TensorView& y) {
    if (!overlap(x, y)) return;
    throw Error(ErrorCode::tensor, fmt::format("{} overlaps {} in memory", a, b),
                fmt::format("give {} memory apart from {}", a, b));
  };
  const std::array<std::pair<std::string_view, const TensorView*>, 3> read = {
      {{"q", &tensors.q}, {"k", &tensors.k}, {"v", &tensors.v}}};
  for (const auto& [name, view] : read) {
    refuse_overlap("out", tensors.out, name, *view);
    if (tensors.lse) refuse_overlap("lse", *tensors.lse, name, *view);
    if (workspace.data) refuse_overlap("workspace", workspace, name, *view);
  }
  if (tensors.lse) refuse_overlap("lse", *tensors.lse, "out", tensors.out);
  if (!workspace.data) return;
  refuse_overlap("workspace", workspace, "out", tensors.out);
  if (tensors.lse) refuse_overlap("workspace", workspace, "lse", *tensors.lse);
}

void require_room(const TensorView& workspace, std::int64_t bytes) {
  if (bytes == 0) return;
  const std::string hint = fmt::format(
      "give {} bytes of device memory at a multiple of {}: context.workspace_size(plan)", bytes,
      kAlignment);
  if (!workspace.data || !workspace.is_contiguous() || workspace.bytes() < bytes) {
    throw Error(ErrorCode::tensor,
                fmt::format("the workspace has {} bytes, and the plan needs {}",
                            workspace.data ? workspace.bytes() : 0, bytes),
                hint);
  }
  if (reinterpret_cast<std::uintptr_t>(workspace.data) % kAlignment == 0) return;
  throw Error(ErrorCode::tensor, "the workspace begins between multiples of 256", hint);
}

}  // namespace

void require_tensors(const Spec& spec, bool wants_lse, const ForwardTensors& tensors,
                     const ContextPlanState& plan, const TensorView& workspace) {
  if (tensors.k_new || tensors.v_new) {
    throw Error(ErrorCode::tensor, "k_new and v_new belong to specs with kv_new",
                "leave them out of the call");
  }
  const Shape& whole = plan.whole;
  const Layout kv = spec.key_value_layout();
  const std::int64_t rows = plan.q_rows();
  const std::int64_t columns = plan.kv_rows();
  const TensorRole q{"q", spec.dtype, spec.layout, "num_q_heads", "q_len", "head_dim"};
  const TensorRole k{"k", spec.key_value_dtype(), kv, "num_kv_heads", "kv_len", "head_dim"};
  const TensorRole v{"v", spec.key_value_dtype(), kv, "num_kv_heads", "kv_len", "v_head_dim"};
  const TensorRole out{"out",   spec.output_dtype(), spec.layout, "num_q_heads",
                       "q_len", "v_head_dim"};
  require_fit({q, whole.num_q_heads, rows, spec.head_dim}, tensors.q, whole.batch);
  require_fit({k, whole.num_kv_heads, columns, spec.head_dim}, tensors.k, whole.batch);
  require_fit({v, whole.num_kv_heads, columns, spec.value_head_dim()}, tensors.v, whole.batch);
  require_fit({out, whole.num_q_heads, rows, spec.value_head_dim()}, tensors.out, whole.batch);
  require_own_elements(out, tensors.out);
  require_lse(wants_lse, tensors.lse, whole, rows);
  if (plan.schedule.bytes_sent > 0) {
    require_runs("k", tensors.k, kv);
    require_runs("v", tensors.v, kv);
  }
  require_room(workspace, plan.schedule.workspace_bytes);
  require_apart(tensors, workspace);
}

}  // namespace tilewright::parallel
