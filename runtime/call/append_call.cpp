#include "runtime/call/append_call.hpp"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "runtime/call/overlap.hpp"
#include "runtime/call/tensor_role.hpp"

namespace tilewright {
namespace {

struct AppendedTensor {
  std::string_view name;
  const TensorView& view;
};

TensorRole role_of_new(const Spec& spec, std::string_view name, std::string_view width) {
  return {name, spec.dtype, Layout::packed, "num_kv_heads", "rows", width};
}

TensorRole role_of_pool(const Spec& spec, std::string_view name, std::string_view width,
                        std::int64_t x) {
  return {name, spec.key_value_dtype(), spec.key_value_layout(), "num_kv_heads", "page_size", width,
          x};
}

abi::AppendTensor append_argument(const TensorView& view, Layout layout, std::int64_t width) {
  const ResolvedTensor tensor = resolved(view, layout);
  return {.data = tensor.data,
          .page_stride = tensor.batch_stride,
          .row_stride = tensor.row_stride,
          .head_stride = tensor.head_stride,
          .width = static_cast<int>(width),
          .is_aligned = is_aligned(tensor, view.dtype) ? 1 : 0};
}

void require_slots(const TensorView& slots, std::int64_t rows) {
  const auto refuse = [&](const std::string& why) {
    throw Error(
        ErrorCode::tensor, "slots " + why,
        fmt::format("given: {}; wanted: i32 or i64 [{}] (rows of k_new)", slots.describe(), rows));
  };
  if (slots.dtype != DType::i32 && slots.dtype != DType::i64) {
    refuse(fmt::format("is {}; it must be i32 or i64", to_string(slots.dtype)));
  }
  if (slots.rank != 1) refuse(fmt::format("has rank {}; it must have rank 1", slots.rank));
  if (slots.shape[0] != rows) {
    refuse(fmt::format("has {}, but k_new has {}", counted(slots.shape[0], "element"),
                       counted(rows, "row")));
  }
  if (const std::string fault = slots.fault(); rows > 0 && !fault.empty()) refuse(fault);
  if (!slots.is_contiguous()) refuse("is not contiguous");
}

void require_planned(std::string_view what, std::int64_t given, std::int64_t planned) {
  if (given == planned) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{} {}, but the plan was made for {}", what, given, planned),
              "make a plan for this shape, or give slots");
}

void require_pool_apart(const AppendedTensor& pool, const AppendedTensor& other) {
  if (!overlap(pool.view, other.view)) return;
  throw Error(ErrorCode::tensor, fmt::format("{} overlaps {} in memory", pool.name, other.name),
              fmt::format("append writes {}: give {} memory that shares no byte with it", pool.name,
                          other.name));
}

void require_pools_apart(const NewRows& rows, const TensorView& k, const TensorView& v,
                         const PlanState* plan) {
  require_pool_apart({"k", k}, {"v", v});
  for (const AppendedTensor& pool : {AppendedTensor{"k", k}, AppendedTensor{"v", v}}) {
    require_pool_apart(pool, {"k_new", rows.k_new});
    require_pool_apart(pool, {"v_new", rows.v_new});
    if (rows.slots) require_pool_apart(pool, {"slots", *rows.slots});
    if (plan == nullptr) continue;
    const TensorView workspace =
        TensorView::contiguous(static_cast<void*>(plan->memory), DType::u8, {plan->geometry.bytes});
    require_pool_apart(pool, {"the plan's workspace", workspace});
    if (plan->sequences.page_table) {
      require_pool_apart(pool, {"page_table", *plan->sequences.page_table});
    }
  }
}

}  // namespace

abi::AppendArguments resolve_append(const Spec& spec, const NewRows& rows, const TensorView& k,
                                    const TensorView& v, const PlanState* plan) {
  const TensorRole k_new_role = role_of_new(spec, "k_new", "head_dim");
  const TensorRole v_new_role = role_of_new(spec, "v_new", "v_head_dim");
  const TensorRole k_role = role_of_pool(spec, "k", "head_dim", x_of(spec.key_value_dtype()));
  const TensorRole v_role = role_of_pool(spec, "v", "v_head_dim", 1);
  const TensorSizes k_new = sizes_of(k_new_role, rows.k_new);
  const TensorSizes v_new = sizes_of(v_new_role, rows.v_new);
  const TensorSizes k_sizes = sizes_of(k_role, k), v_sizes = sizes_of(v_role, v);
  const std::int64_t k_width = spec.head_dim, v_width = spec.value_head_dim();
  require_size(k_new_role, rows.k_new, "head_dim", k_new.width, k_width, "the spec's head_dim");
  require_size(k_role, k, "head_dim", k_sizes.width, k_width, "the spec's head_dim");
  require_size(v_new_role, rows.v_new, "v_head_dim", v_new.width, v_width, "the spec's v_head_dim");
  require_size(v_role, v, "v_head_dim", v_sizes.width, v_width, "the spec's v_head_dim");
  require_size(v_new_role, rows.v_new, "rows", v_new.rows, k_new.rows, "that of k_new");
  require_size(k_new_role, rows.k_new, "num_kv_heads", k_new.heads, k_sizes.heads, "that of k");
  require_size(v_new_role, rows.v_new, "num_kv_heads", v_new.heads, k_sizes.heads, "that of k");
  require_size(v_role, v, "num_kv_heads", v_sizes.heads, k_sizes.heads, "that of k");
  require_size(v_role, v, "pages", v_sizes.batch, k_sizes.batch, "that of k");
  require_size(v_role, v, "page_size", v_sizes.rows, k_sizes.rows, "that of k");
  const std::int64_t rows_of_all_pages = rows_of_pool(k, k_sizes);
  require_own_elements(k_role, k);
  require_own_elements(v_role, v);
  if (rows.slots) {
    require_slots(*rows.slots, k_new.rows);
  } else {
    require_planned("k_new has rows", k_new.rows, plan->shape.total_q);
    require_planned("k has num_kv_heads", k_sizes.heads, plan->shape.num_kv_heads);
    require_planned("k has page_size", k_sizes.rows, plan->shape.page_size);
    require_planned("k has total_kv", rows_of_all_pages, plan->shape.total_kv);
  }
  require_pools_apart(rows, k, v, rows.slots ? nullptr : plan);

  abi::AppendArguments call = {};
  call.k_new = append_argument(rows.k_new, Layout::packed, k_width);
  call.v_new = append_argument(rows.v_new, Layout::packed, v_width);
  call.k = append_argument(k, k_role.layout, k_width);
  call.v = append_argument(v, v_role.layout, v_width);
  call.heads = static_cast<int>(k_sizes.heads);
  call.rows = k_new.rows;
  if (rows.slots) {
    call.slots = rows.slots->data;
    call.slot_bytes = static_cast<int>(size_of(rows.slots->dtype));
    call.pages = {.table = nullptr,
                  .first_page = 0,
                  .pages = static_cast<int>(k_sizes.batch),
                  .page_size = abi::make_divisor(static_cast<int>(k_sizes.rows)),
                  .box_shift = 0};
  } else {
    call.pages = plan->pages();
  }
  return call;
}

}  // namespace tilewright
