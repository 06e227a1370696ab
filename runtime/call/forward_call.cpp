#include "runtime/call/forward_call.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/printable_number.hpp"
#include "generator/spec/number_range.hpp"
#include "runtime/call/split_parts.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright {
namespace {

void require_batch(const TensorRole& role, const TensorView& view, std::int64_t given,
                   std::int64_t wanted) {
  if (given != 1) require_size(role, view, "batch", given, wanted, "the batch of q");
}

std::string extents_text(std::span<const std::int64_t> extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

// lse, max_scores or weights. wanted: its extents.
void* resolve_output(std::string_view name, bool is_output, const std::optional<TensorView>& tensor,
                     DType dtype, std::span<const std::int64_t> wanted) {
  if (!is_output) {
    if (!tensor) return nullptr;
    throw Error(ErrorCode::tensor,
                fmt::format("{} was given, but the spec's outputs do not name it", name),
                fmt::format("add \"{}\" to the spec's outputs", name));
  }
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::tensor, fmt::format("{} {}", name, why),
                fmt::format("wanted: {} {}, contiguous", to_string(dtype), extents_text(wanted)));
  };
  if (!tensor || tensor->data == nullptr) refuse("is missing, but the spec's outputs name it");
  const std::span<const std::int64_t> given = tensor->extents();
  const bool same_shape = tensor->rank == static_cast<int>(wanted.size()) &&
                          std::equal(given.begin(), given.end(), wanted.begin());
  if (tensor->dtype != dtype || !same_shape || !tensor->is_contiguous()) {
    refuse("does not fit: given " + tensor->describe());
  }
  if (const std::string fault = tensor->fault(); !fault.empty()) refuse(fault);
  return tensor->data;
}

float* resolve_rows(std::string_view name, bool is_output, const std::optional<TensorView>& tensor,
                    std::span<const std::int64_t> wanted) {
  return static_cast<float*>(resolve_output(name, is_output, tensor, DType::f32, wanted));
}

void resolve_outputs_of_rows(const Spec& spec, const ForwardTensors& tensors, Pass pass,
                             std::span<const std::int64_t> wanted, ForwardCall& call) {
  call.lse = resolve_rows("lse", spec.outputs.lse, tensors.lse, wanted);
  if (pass == Pass::backward) return;
  call.max_scores = resolve_rows("max_scores", spec.outputs.max_scores, tensors.max_scores, wanted);
  const std::array weights = {call.shape.batch, call.shape.num_q_heads, call.shape.q_len,
                              call.shape.kv_len};
  call.weights = resolve_output("weights", spec.outputs.weights, tensors.weights,
                                spec.output_dtype(), weights);
}

double resolved_scale(const Spec& spec, const ForwardOptions& options) {
  const double scale = options.scale.value_or(spec.softmax_scale());
  if (!std::isfinite(static_cast<float>(scale))) {
    throw Error(ErrorCode::usage,
                fmt::format("scale is {}; it must be finite as a float32", printable(scale)));
  }
  if (f32_range(scale) == FloatRange::underflows) {
    throw Error(ErrorCode::usage, fmt::format("scale is {}, which a float32 makes 0", scale));
  }
  return scale;
}

// New rows next to pages: as many as q has.
ResolvedTensor resolve_new(const Spec& spec, std::string_view name,
                           const std::optional<TensorView>& tensor, std::string_view width_name,
                           std::int64_t width, const Shape& shape) {
  if (!tensor) {
    throw Error(ErrorCode::tensor, fmt::format("{} is missing, but the spec says kv_new", name),
                fmt::format("give {} [total_q, num_kv_heads, {}]: the step's new rows",
                            to_string(spec.dtype), width_name));
  }
  const TensorRole role{name, spec.dtype, Layout::packed, "num_kv_heads", "total_q", width_name};
  const TensorSizes sizes = sizes_of(role, *tensor);
  require_size(role, *tensor, width_name, sizes.width, width,
               fmt::format("the spec's {}", width_name));
  require_size(role, *tensor, "num_kv_heads", sizes.heads, shape.num_kv_heads, "that of k");
  require_size(role, *tensor, "total_q", sizes.rows, shape.q_len, "that of q");
  return resolved(*tensor, Layout::packed);
}

void resolve_new_rows(const Spec& spec, const ForwardTensors& tensors, ForwardCall& call) {
  if (!spec.kv_new) {
    if (!tensors.k_new && !tensors.v_new) return;
    throw Error(ErrorCode::tensor,
                fmt::format("{} was given, but the spec does not say kv_new",
                            tensors.k_new ? "k_new" : "v_new"),
                R"(write "kv_new": true in the spec, or append the rows to the pages)");
  }
  call.k_new = resolve_new(spec, "k_new", tensors.k_new, "head_dim", spec.head_dim, call.shape);
  call.v_new =
      resolve_new(spec, "v_new", tensors.v_new, "v_head_dim", spec.value_head_dim(), call.shape);
}

// All but lse, max_scores and weights. Sizes are read off the tensors; a packed call counts as one
// batch.
ForwardCall resolve_tensors(const Spec& spec, const ForwardTensors& tensors) {
  const Layout kv_layout = spec.key_value_layout();
  const std::string_view q_rows = spec.is_packed() ? "total_q" : "q_len";
  const std::string_view kv_rows = spec.is_paged()    ? "page_size"
                                   : spec.is_packed() ? "total_kv"
                                                      : "kv_len";
  const TensorRole q_role{"q", spec.dtype, spec.layout, "num_q_heads", q_rows, "head_dim"};
  const DType kv_dtype = spec.key_value_dtype();
  const TensorRole k_role{"k",     kv_dtype,   kv_layout,     "num_kv_heads",
                          kv_rows, "head_dim", x_of(kv_dtype)};
  const TensorRole v_role{"v", kv_dtype, kv_layout, "num_kv_heads", kv_rows, "v_head_dim", 1};
  const TensorRole out_role{"out",  spec.output_dtype(), spec.layout, "num_q_heads",
                            q_rows, "v_head_dim"};

  const TensorSizes q = sizes_of(q_role, tensors.q);
  const TensorSizes k = sizes_of(k_role, tensors.k);
  const TensorSizes v = sizes_of(v_role, tensors.v);
  const TensorSizes out = sizes_of(out_role, tensors.out);

  require_size(q_role, tensors.q, "head_dim", q.width, spec.head_dim, "the spec's head_dim");
  require_size(k_role, tensors.k, "head_dim", k.width, spec.head_dim, "the spec's head_dim");
  require_size(v_role, tensors.v, "v_head_dim", v.width, spec.value_head_dim(),
               "the spec's v_head_dim");
  require_size(out_role, tensors.out, "v_head_dim", out.width, spec.value_head_dim(),
               "the spec's v_head_dim");
  if (spec.is_paged()) {
    require_size(v_role, tensors.v, "pages", v.batch, k.batch, "that of k");
  } else {
    require_batch(k_role, tensors.k, k.batch, q.batch);
    require_batch(v_role, tensors.v, v.batch, q.batch);
  }
  require_size(v_role, tensors.v, "num_kv_heads", v.heads, k.heads, "that of k");
  require_size(v_role, tensors.v, kv_rows, v.rows, k.rows, "that of k");
  require_size(out_role, tensors.out, "batch", out.batch, q.batch, "the batch of q");
  require_size(out_role, tensors.out, "num_q_heads", out.heads, q.heads, "that of q");
  require_size(out_role, tensors.out, q_rows, out.rows, q.rows, "that of q");
  require_own_elements(out_role, tensors.out);

  ForwardCall call;
  call.shape = {.batch = q.batch,
                .num_q_heads = q.heads,
                .num_kv_heads = k.heads,
                .q_len = q.rows,
                .kv_len = k.rows};
  if (spec.is_paged()) {
    call.page_size = k.rows;
    call.shape.kv_len = rows_of_pool(tensors.k, k);
  }
  call.q = resolved(tensors.q, spec.layout);
  call.k = resolved(tensors.k, kv_layout);
  call.v = resolved(tensors.v, kv_layout);
  call.out = resolved(tensors.out, spec.layout);
  resolve_new_rows(spec, tensors, call);
  return call;
}

void require_of_plan(std::string_view what, std::int64_t given, std::int64_t planned) {
  if (given == planned) return;
  throw Error(ErrorCode::tensor,
              fmt::format("the call has {} {}, but the plan was made for {}", what, given, planned),
              "make a plan for this shape with attention.plan(shape, sequences, ...)");
}

}  // namespace

ForwardCall resolve_call(const Spec& spec, const ForwardTensors& tensors,
                         const ForwardOptions& options, Pass pass) {
  require_splits(options.splits);
  ForwardCall call = resolve_tensors(spec, tensors);
  call.shape.q_offset = options.q_offset;
  call.shape.kv_offset = options.kv_offset;
  validate(call.shape);
  const std::array wanted = {call.shape.batch, call.shape.num_q_heads, call.shape.q_len};
  resolve_outputs_of_rows(spec, tensors, pass, wanted, call);
  call.stream = options.stream;
  call.splits = options.splits;
  call.scale = resolved_scale(spec, options);
  return call;
}

ForwardCall resolve_packed_call(const Spec& spec, const ForwardTensors& tensors,
                                const PackedShape& shape, const ForwardOptions& options,
                                Pass pass) {
  if (options.q_offset != 0 || options.kv_offset != 0) {
    throw Error(ErrorCode::usage, "a packed call takes no offsets",
                "set the offsets of each sequence: Sequences::q_offset, Sequences::kv_offset");
  }
  if (options.workspace.data != nullptr) {
    throw Error(ErrorCode::usage, "a packed call takes no workspace",
                "give the workspace to its plan: PlanOptions::workspace");
  }
  if (options.splits != 0) {
    throw Error(ErrorCode::usage, "a packed call takes no splits",
                "its plan says how columns are split: PlanOptions::splits");
  }
  ForwardCall call = resolve_tensors(spec, tensors);
  require_of_plan("num_q_heads", call.shape.num_q_heads, shape.num_q_heads);
  require_of_plan("num_kv_heads", call.shape.num_kv_heads, shape.num_kv_heads);
  require_of_plan("total_q", call.shape.q_len, shape.total_q);
  require_of_plan("page_size", call.page_size, shape.page_size);
  require_of_plan("total_kv", call.shape.kv_len, shape.total_kv);
  call.shape.batch = shape.batch;
  const std::array wanted = {shape.num_q_heads, shape.total_q};
  resolve_outputs_of_rows(spec, tensors, pass, wanted, call);
  call.stream = options.stream;
  call.scale = resolved_scale(spec, options);
  return call;
}

Shape shape_of_totals(const PackedShape& shape) {
  return {.batch = shape.batch,
          .num_q_heads = shape.num_q_heads,
          .num_kv_heads = shape.num_kv_heads,
          .q_len = shape.total_q,
          .kv_len = shape.total_kv};
}

}  // namespace tilewright
