#include "runtime/parallel/tensor_checks.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/parallel/views.hpp"

namespace tilewright::parallel {
namespace {

void require_runs(std::string_view name, const TensorView& view, Layout layout) {
  if (has_runs(batched(view, layout), layout)) return;
  throw Error(
      ErrorCode::tensor,
      fmt::format("{} is sent to other ranks, and its rows are not dense within a {}: {}", name,
                  layout == Layout::bhsd     ? "head"
                  : layout == Layout::packed ? "tensor"
                                             : "batch",
                  view.describe()),
      layout == Layout::bhsd
          ? R"(copy it, or, if heads lie within rows, write "kv_layout": "bshd" in the spec)"
          : R"(copy it, or, if rows lie within heads, write "kv_layout": "bhsd" in the spec)");
}

}  // namespace

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

void require_call_tensors(const Spec& spec, const CallTensors& tensors,
                          const ContextPlanState& plan) {
  const Shape& whole = plan.whole;
  const Layout kv = spec.key_value_layout();
  const std::int64_t rows = plan.q_rows();
  const std::int64_t columns = plan.kv_rows();
  const std::string_view of_q = plan.q_rows_name();
  const std::string_view of_kv = plan.kv_rows_name();
  const TensorRole q{"q", spec.dtype, spec.layout, "num_q_heads", of_q, "head_dim"};
  const TensorRole k{"k", spec.key_value_dtype(), kv, "num_kv_heads", of_kv, "head_dim"};
  const TensorRole v{"v", spec.key_value_dtype(), kv, "num_kv_heads", of_kv, "v_head_dim"};
  const TensorRole out{"out", spec.output_dtype(), spec.layout, "num_q_heads", of_q, "v_head_dim"};
  require_fit({q, whole.num_q_heads, rows, spec.head_dim}, tensors.q, whole.batch);
  require_fit({k, whole.num_kv_heads, columns, spec.head_dim}, tensors.k, whole.batch);
  require_fit({v, whole.num_kv_heads, columns, spec.value_head_dim()}, tensors.v, whole.batch);
  require_fit({out, whole.num_q_heads, rows, spec.value_head_dim()}, tensors.out, whole.batch);
  if (plan.schedule.bytes_sent > 0) {
    require_runs("k", tensors.k, kv);
    require_runs("v", tensors.v, kv);
  }
}

void require_row_numbers(std::string_view name, const TensorView& view,
                         const ContextPlanState& plan) {
  const std::array dense = {plan.whole.batch, plan.whole.num_q_heads, plan.q_rows()};
  const std::span<const std::int64_t> wanted = std::span(dense).subspan(plan.packed ? 1 : 0);
  const std::string hint = fmt::format("wanted: f32 [{}], contiguous", fmt::join(wanted, ", "));
  const std::span<const std::int64_t> given = view.extents();
  if (view.dtype != DType::f32 || !view.is_contiguous() ||
      !std::equal(given.begin(), given.end(), wanted.begin(), wanted.end())) {
    throw Error(ErrorCode::tensor, fmt::format("{} does not fit: given {}", name, view.describe()),
                hint);
  }
  if (const std::string fault = view.fault(); !fault.empty()) {
    throw Error(ErrorCode::tensor, fmt::format("{} {}", name, fault), hint);
  }
}

void require_apart(std::string_view name, const TensorView& view, std::string_view other_name,
                   const TensorView& other) {
  if (!view.data || !other.data || !overlap(view, other)) return;
  throw Error(ErrorCode::tensor, fmt::format("{} overlaps {} in memory", name, other_name),
              fmt::format("give {} memory apart from {}", name, other_name));
}

void require_room(const TensorView& workspace, std::int64_t bytes) {
  if (bytes == 0) return;
  const std::string hint = fmt::format(
      "give {} bytes of device memory at a multiple of {}: context.workspace_size(plan, pass)",
      bytes, kAlignment);
  if (!workspace.data || !workspace.is_contiguous() || workspace.bytes() < bytes) {
    throw Error(ErrorCode::tensor,
                fmt::format("the workspace has {} bytes, and the plan needs {}",
                            workspace.data ? workspace.bytes() : 0, bytes),
                hint);
  }
  if (reinterpret_cast<std::uintptr_t>(workspace.data) % kAlignment == 0) return;
  throw Error(ErrorCode::tensor, "the workspace begins between multiples of 256", hint);
}

}  // namespace tilewright::parallel
