#include "runtime/api/sequences.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/call/size_limits.hpp"

namespace tilewright {
std::string PackedShape::describe() const {
  std::string text = fmt::format("batch {}, heads {}/{}, total_q {}, total_kv {}", batch,
                                 num_q_heads, num_kv_heads, total_q, total_kv);
  if (page_size != 0) text += fmt::format(", page_size {}", page_size);
  return text;
}

void validate(const PackedShape& shape) {
  require_size("batch", shape.batch, 0, kMaxIndex);
  require_size("num_q_heads", shape.num_q_heads, 1, kMaxIndex);
  require_size("num_kv_heads", shape.num_kv_heads, 1, kMaxIndex);
  require_size("total_q", shape.total_q, 0, kMaxIndex);
  require_size("total_kv", shape.total_kv, 0, kMaxIndex);
  require_size("page_size", shape.page_size, 0, kMaxIndex);
  require_size("max_q_len", shape.max_q_len, 0, kMaxIndex);
  require_size("max_kv_len", shape.max_kv_len, 0, kMaxIndex);
  if (shape.num_q_heads % shape.num_kv_heads == 0) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{} query heads cannot be shared by {} kv heads", shape.num_q_heads,
                          shape.num_kv_heads),
              "num_q_heads must be a whole multiple of num_kv_heads");
}

}  // namespace tilewright
