#include "runtime/call/forward_call.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "generator/spec/number_range.hpp"
#include "runtime/call/overlap.hpp"

namespace tilewright {
namespace {

struct Sizes {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t rows;
  std::int64_t width;
};

std::string dimension_names(Layout layout, std::string_view heads, std::string_view rows,
                            std::string_view width) {
  return layout == Layout::bhsd ? fmt::format("[batch, {}, {}, {}]", heads, rows, width)
                                : fmt::format("[batch, {}, {}, {}]", rows, heads, width);
}

// What is known of one tensor before a call: for its checks and their messages.
struct Role {
  std::string_view name;
  DType dtype;
  Layout layout;
  std::string_view heads;
  std::string_view rows;
  std::string_view width;

  [[noreturn]] void refuse(const TensorView& view, const std::string& why) const {
    throw Error(ErrorCode::tensor, fmt::format("{} {}", name, why),
                fmt::format("given: {}; wanted: {} {}", view.describe(), to_string(dtype),
                            dimension_names(layout, heads, rows, width)));
  }
};

int head_dimension(Layout layout) {
  return layout == Layout::bhsd ? 1 : 2;
}
int row_dimension(Layout layout) {
  return layout == Layout::bhsd ? 2 : 1;
}

Sizes sizes_of(const Role& role, const TensorView& view) {
  if (view.data == nullptr) role.refuse(view, "has no data");
  if (view.dtype != role.dtype) {
    role.refuse(view, fmt::format("is {}, but the spec says {}", to_string(view.dtype),
                                  to_string(role.dtype)));
  }
  if (view.rank != 4)
    role.refuse(view, fmt::format("has rank {}; attention needs rank 4", view.rank));
  for (int i = 0; i < 4; ++i) {
    if (view.shape[i] < 1) role.refuse(view, fmt::format("is empty in dimension {}", i));
  }
  if (view.shape[3] > 1 && view.strides[3] != 1) {
    role.refuse(view, fmt::format("has stride {} in its last dimension, which must be contiguous",
                                  view.strides[3]));
  }
  if (const std::string fault = view.fault(); !fault.empty()) role.refuse(view, fault);
  return {view.shape[0], view.shape[head_dimension(role.layout)],
          view.shape[row_dimension(role.layout)], view.shape[3]};
}

void require_size(const Role& role, const TensorView& view, std::string_view what,
                  std::int64_t given, std::int64_t wanted, std::string_view because) {
  if (given == wanted) return;
  role.refuse(view, fmt::format("has {} {}, but {} is {}", what, given, because, wanted));
}

void require_batch(const Role& role, const TensorView& view, std::int64_t given,
                   std::int64_t wanted) {
  if (given != 1) require_size(role, view, "batch", given, wanted, "the batch of q");
}

ResolvedTensor resolved(const TensorView& view, Layout layout) {
  return {.data = view.data,
          .batch_stride = view.shape[0] == 1 ? 0 : view.strides[0],
          .head_stride = view.strides[head_dimension(layout)],
          .row_stride = view.strides[row_dimension(layout)]};
}

std::string element_text(const std::array<std::int64_t, kMaxRank>& index, int rank) {
  return fmt::format("[{}]", fmt::join(index.begin(), index.begin() + rank, ", "));
}

// Whether each dimension's stride is at least as long as what lies inside it, for an order of the
// dimensions, fastest first. What calls usually bring passes here, in two nanoseconds.
bool nest(const TensorView& view, int fast, int middle, int slow) {
  std::int64_t inside = view.shape[3];
  for (const int d : {fast, middle, slow}) {
    if (view.shape[d] == 1) continue;
    if (view.strides[d] < inside) return false;
    inside += view.strides[d] * (view.shape[d] - 1);
  }
  return true;
}

void require_own_elements(const Role& role, const TensorView& view) {
  if (nest(view, 2, 1, 0) || nest(view, 1, 2, 0)) return;
  const std::optional<SharedElements> shared = find_shared_elements(view);
  if (!shared) return;
  const auto element = static_cast<std::int64_t>(size_of(view.dtype));
  std::string strides;
  for (int d = 0; d < view.rank; ++d) {
    if (shared->first[d] == shared->second[d]) continue;
    strides += fmt::format("{}stride {} ({} bytes) in dimension {}", strides.empty() ? "" : ", ",
                           view.strides[d], view.strides[d] * element, d);
  }
  role.refuse(
      view, fmt::format("overlaps itself: elements {} and {} share bytes, with {}; a row "
                        "takes {} bytes",
                        element_text(shared->first, view.rank),
                        element_text(shared->second, view.rank), strides, view.shape[3] * element));
}

float* resolve_lse(const Spec& spec, const std::optional<TensorView>& lse, const Shape& shape) {
  if (!spec.outputs.lse) {
    if (!lse) return nullptr;
    throw Error(ErrorCode::tensor, "lse was given, but the spec's outputs do not name it",
                "add \"lse\" to the spec's outputs");
  }
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::tensor, "lse " + why,
                fmt::format("wanted: f32 [{}, {}, {}], contiguous", shape.batch, shape.num_q_heads,
                            shape.q_len));
  };
  if (!lse || lse->data == nullptr) refuse("is missing, but the spec's outputs name it");
  const bool same_shape = lse->rank == 3 && lse->shape[0] == shape.batch &&
                          lse->shape[1] == shape.num_q_heads && lse->shape[2] == shape.q_len;
  if (lse->dtype != DType::f32 || !same_shape || !lse->is_contiguous()) {
    refuse("does not fit: given " + lse->describe());
  }
  if (const std::string fault = lse->fault(); !fault.empty()) refuse(fault);
  return static_cast<float*>(lse->data);
}

}  // namespace

ForwardCall resolve_call(const Spec& spec, const ForwardTensors& tensors,
                         const ForwardOptions& options) {
  const Layout kv_layout = spec.key_value_layout();
  const Role q_role{"q", spec.dtype, spec.layout, "num_q_heads", "q_len", "head_dim"};
  const Role k_role{"k", spec.key_value_dtype(), kv_layout, "num_kv_heads", "kv_len", "head_dim"};
  const Role v_role{"v", spec.key_value_dtype(), kv_layout, "num_kv_heads", "kv_len", "v_head_dim"};
  const Role out_role{"out",   spec.output_dtype(), spec.layout, "num_q_heads",
                      "q_len", "v_head_dim"};

  const Sizes q = sizes_of(q_role, tensors.q);
  const Sizes k = sizes_of(k_role, tensors.k);
  const Sizes v = sizes_of(v_role, tensors.v);
  const Sizes out = sizes_of(out_role, tensors.out);

  require_size(q_role, tensors.q, "head_dim", q.width, spec.head_dim, "the spec's head_dim");
  require_size(k_role, tensors.k, "head_dim", k.width, spec.head_dim, "the spec's head_dim");
  require_size(v_role, tensors.v, "v_head_dim", v.width, spec.value_head_dim(),
               "the spec's v_head_dim");
  require_size(out_role, tensors.out, "v_head_dim", out.width, spec.value_head_dim(),
               "the spec's v_head_dim");
  require_batch(k_role, tensors.k, k.batch, q.batch);
  require_batch(v_role, tensors.v, v.batch, q.batch);
  require_size(v_role, tensors.v, "num_kv_heads", v.heads, k.heads, "that of k");
  require_size(v_role, tensors.v, "kv_len", v.rows, k.rows, "that of k");
  require_size(out_role, tensors.out, "batch", out.batch, q.batch, "the batch of q");
  require_size(out_role, tensors.out, "num_q_heads", out.heads, q.heads, "that of q");
  require_size(out_role, tensors.out, "q_len", out.rows, q.rows, "that of q");
  require_own_elements(out_role, tensors.out);

  ForwardCall call;
  call.shape = {.batch = q.batch,
                .num_q_heads = q.heads,
                .num_kv_heads = k.heads,
                .q_len = q.rows,
                .kv_len = k.rows,
                .q_offset = options.q_offset,
                .kv_offset = options.kv_offset};
  validate(call.shape);
  call.q = resolved(tensors.q, spec.layout);
  call.k = resolved(tensors.k, kv_layout);
  call.v = resolved(tensors.v, kv_layout);
  call.out = resolved(tensors.out, spec.layout);
  call.lse = resolve_lse(spec, tensors.lse, call.shape);
  call.stream = options.stream;
  call.scale = options.scale.value_or(spec.softmax_scale());
  if (!std::isfinite(static_cast<float>(call.scale))) {
    throw Error(ErrorCode::usage,
                fmt::format("scale is {}; it must be finite as a float32", call.scale));
  }
  if (f32_range(call.scale) == FloatRange::underflows) {
    throw Error(ErrorCode::usage, fmt::format("scale is {}, which a float32 makes 0", call.scale));
  }
  return call;
}

}  // namespace tilewright
