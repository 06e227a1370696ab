#include "runtime/api/sequences.hpp"

#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright {
namespace {

// Kernels count up to the end of tiles that go beyond the last row or column.
constexpr std::int64_t kMaxIndex = std::numeric_limits<int>::max() - 1024;

void require_size(std::string_view name, std::int64_t size, std::int64_t least) {
  if (size >= least && size <= kMaxIndex) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{} is {}; it must be from {} to {}", name, size, least, kMaxIndex));
}

}  // namespace

std::string PackedShape::describe() const {
  return fmt::format("batch {}, heads {}/{}, total_q {}, total_kv {}", batch, num_q_heads,
                     num_kv_heads, total_q, total_kv);
}

void validate(const PackedShape& shape) {
  require_size("batch", shape.batch, 0);
  require_size("num_q_heads", shape.num_q_heads, 1);
  require_size("num_kv_heads", shape.num_kv_heads, 1);
  require_size("total_q", shape.total_q, 0);
  require_size("total_kv", shape.total_kv, 0);
  require_size("max_q_len", shape.max_q_len, 0);
  require_size("max_kv_len", shape.max_kv_len, 0);
  if (shape.num_q_heads % shape.num_kv_heads == 0) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{} query heads cannot be shared by {} kv heads", shape.num_q_heads,
                          shape.num_kv_heads),
              "num_q_heads must be a whole multiple of num_kv_heads");
}

}  // namespace tilewright
