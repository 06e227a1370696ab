#include "runtime/cuda/head_groups.hpp"

#include <algorithm>

#include "base/ceil_div.hpp"
#include "templates/abi/plan.hpp"

namespace tilewright::cuda {
namespace {

// Of K and V, for one head.
std::int64_t bytes_of_row(const Spec& spec) {
  return (spec.head_dim + spec.value_head_dim()) *
         static_cast<std::int64_t>(size_of(spec.key_value_dtype()));
}

}  // namespace

HeadGroups head_groups(const Spec& spec, const Shape& shape, std::int64_t l2_bytes) {
  const std::int64_t bytes_per_head = std::max<std::int64_t>(1, shape.kv_len * bytes_of_row(spec));
  const std::int64_t ratio = shape.num_q_heads / shape.num_kv_heads;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, l2_bytes / 2 / bytes_per_head);
  const std::int64_t total = shape.batch * shape.num_q_heads;
  const std::int64_t heads = std::min(kv_heads * ratio, total);
  return {.heads = heads, .count = std::max<std::int64_t>(0, total / heads - 2)};
}

PackedGroups packed_groups(const Spec& spec, const Shape& shape, std::int64_t l2_bytes) {
  // How much of a pool a call reads is known on the device alone.
  if (spec.is_paged()) {
    return {.sequences = 1,
            .kv_rows = std::max<std::int64_t>(1, shape.kv_len),
            .heads = shape.num_q_heads / shape.num_kv_heads};
  }
  const std::int64_t room = std::max<std::int64_t>(1, l2_bytes / 2 / bytes_of_row(spec));  // rows
  const std::int64_t rows = std::max<std::int64_t>(1, shape.kv_len);
  const std::int64_t sequences = std::min<std::int64_t>(ceil_div(rows, room), abi::kMostPlanGroups);
  const std::int64_t kv_heads = std::clamp<std::int64_t>(room / rows, 1, shape.num_kv_heads);
  const std::int64_t head_groups = ceil_div(shape.num_kv_heads, kv_heads);
  return {.sequences = sequences,
          .kv_rows = ceil_div(rows, sequences),
          .heads =
              ceil_div(shape.num_kv_heads, head_groups) * (shape.num_q_heads / shape.num_kv_heads)};
}

}  // namespace tilewright::cuda
