#include "runtime/cuda/head_groups.hpp"

#include <algorithm>

namespace tilewright::cuda {

HeadGroups head_groups(const Spec& spec, const Shape& shape, std::int64_t l2_bytes) {
  const auto element = static_cast<std::int64_t>(size_of(spec.key_value_dtype()));
  const std::int64_t bytes_per_head =
      shape.kv_len * (spec.head_dim + spec.value_head_dim()) * element;
  const std::int64_t ratio = shape.num_q_heads / shape.num_kv_heads;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, l2_bytes / 2 / bytes_per_head);
  const std::int64_t total = shape.batch * shape.num_q_heads;
  const std::int64_t heads = std::min(kv_heads * ratio, total);
  return {.heads = heads, .count = std::max<std::int64_t>(0, total / heads - 2)};
}

}  // namespace tilewright::cuda
