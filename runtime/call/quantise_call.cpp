#include "runtime/call/quantise_call.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/ceil_div.hpp"
#include "base/error.hpp"
#include "generator/snippet/append_scales.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright {
namespace {

SnippetKind scale_of(Operand which) {
  return which == Operand::q   ? SnippetKind::q_scale
         : which == Operand::k ? SnippetKind::k_scale
                               : SnippetKind::v_scale;
}

abi::QuantiseSource source_of(const TensorView& from) {
  switch (from.dtype) {
    case DType::f32:
      return abi::kFromF32;
    case DType::f16:
      return abi::kFromF16;
    case DType::bf16:
      return abi::kFromBF16;
    default:
      break;
  }
  throw Error(ErrorCode::tensor,
              fmt::format("from is {}; it must be f32, f16 or bf16", to_string(from.dtype)),
              fmt::format("given: {}", from.describe()));
}

// A pool's rows are the rows of its pages.
TensorRole role_of(const Spec& spec, Operand which, std::string_view name, DType dtype) {
  const bool is_q = which == Operand::q;
  const Layout layout = is_q ? spec.layout : spec.key_value_layout();
  return {name,
          dtype,
          layout,
          is_q ? "num_q_heads" : "num_kv_heads",
          layout == Layout::paged    ? "page_size"
          : layout == Layout::packed ? "rows"
          : is_q                     ? "q_len"
                                     : "kv_len",
          which == Operand::v ? "v_head_dim" : "head_dim"};
}

void require_as_in(const TensorRole& role, const TensorView& view, const TensorSizes& sizes,
                   const TensorSizes& wanted, std::string_view because) {
  const std::string_view batch = role.layout == Layout::paged ? "pages" : "batch";
  require_size(role, view, batch, sizes.batch, wanted.batch, because);
  require_size(role, view, role.rows, sizes.rows, wanted.rows, because);
  require_size(role, view, role.heads, sizes.heads, wanted.heads, because);
}

// The sizes that the plan expects of the tensor.
TensorSizes planned_sizes(const PackedShape& shape, Operand which, std::int64_t width) {
  if (which == Operand::q) return {1, shape.num_q_heads, shape.total_q, width};
  if (shape.page_size == 0) return {1, shape.num_kv_heads, shape.total_kv, width};
  return {shape.pages(), shape.num_kv_heads, shape.page_size, width};
}

// All sequences share k and v of batch 1.
TensorSizes sizes_in(const Shape& shape, Operand which, const TensorSizes& given) {
  if (which == Operand::q) return {shape.batch, shape.num_q_heads, shape.q_len, given.width};
  return {given.batch == 1 ? 1 : shape.batch, shape.num_kv_heads, shape.kv_len, given.width};
}

void require_apart(const TensorView& to, const TensorView& from, const PlanState* plan) {
  const auto require = [&](const TensorView& other, std::string_view name) {
    if (!overlap(to, other)) return;
    throw Error(ErrorCode::tensor, fmt::format("to overlaps {} in memory", name),
                fmt::format("give to memory that shares no byte with {}", name));
  };
  require(from, "from");
  if (plan == nullptr) return;
  require(
      TensorView::contiguous(static_cast<void*>(plan->memory), DType::u8, {plan->geometry.bytes}),
      "the plan's workspace");
  if (plan->sequences.page_table) require(*plan->sequences.page_table, "page_table");
}

// The sizes that one tensor tells of its call; the others are 0.
Shape shape_of_tensor(const TensorSizes& sizes, Operand which, bool is_dense) {
  Shape shape = {.batch = is_dense ? sizes.batch : 0, .num_q_heads = 0, .num_kv_heads = 0};
  const std::int64_t rows = is_dense ? sizes.rows : sizes.batch * sizes.rows;
  (which == Operand::q ? shape.num_q_heads : shape.num_kv_heads) = sizes.heads;
  (which == Operand::q ? shape.q_len : shape.kv_len) = rows;
  return shape;
}

abi::QuantisedTensor argument_of(const TensorView& view, Layout layout) {
  const ResolvedTensor tensor = resolved(view, layout);
  return {tensor.data, tensor.batch_stride, tensor.row_stride, tensor.head_stride};
}

// Enough blocks of threads share a sequence to fill a GPU, and few enough that blocks without rows
// cost little.
std::int64_t parts_of_sequence(std::int64_t longest, std::int64_t batch) {
  constexpr std::int64_t kEnoughBlocks = 4096;
  const std::int64_t most = std::max<std::int64_t>(kEnoughBlocks / batch, 1);
  return std::clamp<std::int64_t>(ceil_div(longest, abi::kQuantiseRowsOfBlock), 1, most);
}

}  // namespace

std::array<std::string, 3> named_beyond_tensors(const Spec& spec) {
  std::array<std::string, 3> named;
  for (const Operand which : {Operand::q, Operand::k, Operand::v}) {
    std::vector<std::string_view> unknown =
        which == Operand::q ? std::vector<std::string_view>{"h_kv", "num_kv_heads", "kv_len"}
                            : std::vector<std::string_view>{"num_q_heads", "q_len"};
    if (spec.is_packed()) {
      unknown.insert(unknown.end(), {"b", "q_idx", "kv_idx", "q_len", "kv_len"});
    }
    named[static_cast<std::size_t>(which)] = first_named(spec, scale_of(which), unknown);
  }
  return named;
}

QuantiseCall resolve_quantise(const Spec& spec, const TensorView& from, const TensorView& to,
                              const PlanState* plan, const Shape* shape, Operand which) {
  if (which == Operand::q && !is_quantised(spec.dtype)) {
    throw Error(
        ErrorCode::usage,
        fmt::format("q is {} in this spec; quantise stores one-byte dtypes", to_string(spec.dtype)),
        "quantise k and v, and pass q to forward unchanged");
  }
  if (which != Operand::q && spec.is_paged_x()) {
    throw Error(ErrorCode::usage, "quantise does not write pools of kv_layout \"paged_x\"",
                "append divides new rows by their scales and writes them there");
  }
  const abi::QuantiseSource source = source_of(from);
  const TensorRole from_role = role_of(spec, which, "from", from.dtype);
  const TensorRole to_role = role_of(spec, which, "to", spec.key_value_dtype());
  const Layout layout = to_role.layout;
  const TensorSizes of_from = sizes_of(from_role, from), sizes = sizes_of(to_role, to);
  const bool is_v = which == Operand::v;
  const std::int64_t width = is_v ? spec.value_head_dim() : spec.head_dim;
  require_size(from_role, from, from_role.width, of_from.width, width,
               is_v ? "the spec's v_head_dim" : "the spec's head_dim");
  require_size(to_role, to, to_role.width, sizes.width, width,
               is_v ? "the spec's v_head_dim" : "the spec's head_dim");
  require_as_in(to_role, to, sizes, of_from, "that of from");
  if (plan != nullptr) {
    require_as_in(to_role, to, sizes, planned_sizes(plan->shape, which, width), "that of the plan");
  }
  if (shape != nullptr) {
    require_as_in(to_role, to, sizes, sizes_in(*shape, which, sizes), "that of the shape");
    constexpr std::string_view kBatch[] = {"b"};
    if (sizes.batch != shape->batch && !first_named(spec, scale_of(which), kBatch).empty()) {
      to_role.refuse(to, fmt::format("has batch 1 for {} sequences, but {} names b", shape->batch,
                                     to_string(scale_of(which))));
    }
  }
  const std::int64_t all_rows =
      layout == Layout::paged ? rows_of_pool(to, sizes) : sizes.batch * sizes.rows;
  require_own_elements(to_role, to);
  require_apart(to, from, plan);

  QuantiseCall call = {};
  abi::QuantiseArguments& arguments = call.arguments;
  arguments.from = argument_of(from, layout);
  arguments.to = argument_of(to, layout);
  arguments.source = source;
  arguments.operand = static_cast<int>(which);
  arguments.heads = static_cast<int>(sizes.heads);
  arguments.width = static_cast<int>(width);
  arguments.group = 1;
  arguments.is_aligned =
      is_aligned(resolved(from, layout), from.dtype) && is_aligned(resolved(to, layout), to.dtype)
          ? 1
          : 0;
  arguments.rows = sizes.rows;
  arguments.all_rows = all_rows;
  arguments.is_dense = spec.is_packed() ? 0 : 1;
  if (layout == Layout::paged) {
    arguments.pages = {.table = nullptr,
                       .first_page = 0,
                       .pages = static_cast<int>(sizes.batch),
                       .page_size = abi::make_divisor(static_cast<int>(sizes.rows)),
                       .box_shift = 0};
  }
  call.blocks = ceil_div(all_rows, abi::kQuantiseRowsOfBlock);
  if (plan != nullptr) {
    call.shape = shape_of_totals(plan->shape);
    if (layout == Layout::paged) arguments.pages = plan->pages();
    arguments.has_new_rows = plan->has_new_rows ? 1 : 0;
    const bool is_q = which == Operand::q;
    const std::int64_t longest = is_q ? plan->shape.max_q_len : plan->shape.max_kv_len;
    const std::int64_t batch = plan->shape.batch;
    arguments.parts_of_sequence =
        static_cast<int>(parts_of_sequence(longest, std::max<std::int64_t>(batch, 1)));
    call.blocks = all_rows == 0 ? 0 : batch * arguments.parts_of_sequence;
  } else if (shape != nullptr) {
    call.shape = *shape;
    arguments.offset = static_cast<int>(which == Operand::q ? shape->q_offset : shape->kv_offset);
  } else {
    call.shape = shape_of_tensor(sizes, which, !spec.is_packed());
  }
  if (which == Operand::q && call.shape.num_kv_heads > 0) {
    arguments.group = static_cast<int>(call.shape.num_q_heads / call.shape.num_kv_heads);
  }
  return call;
}

}  // namespace tilewright
