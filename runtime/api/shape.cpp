#include "runtime/api/shape.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/call/size_limits.hpp"

namespace tilewright {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<int>::max();

void require_index_range(std::string_view name, std::int64_t offset, std::int64_t length) {
  if (offset >= -kMaxIndex && offset <= kMaxIndex - length) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{}_offset {} with {}_len {} leaves the range of a 32-bit index", name,
                          offset, name, length));
}

}  // namespace

std::string Shape::describe() const {
  std::string text = fmt::format("batch {}, heads {}/{}, q_len {}, kv_len {}", batch, num_q_heads,
                                 num_kv_heads, q_len, kv_len);
  if (q_offset != 0) text += fmt::format(", q_offset {}", q_offset);
  if (kv_offset != 0) text += fmt::format(", kv_offset {}", kv_offset);
  return text;
}

void validate(const Shape& shape) {
  require_size("batch", shape.batch, 1, kMaxCount);
  require_size("num_q_heads", shape.num_q_heads, 1, kMaxCount);
  require_size("num_kv_heads", shape.num_kv_heads, 1, kMaxCount);
  require_size("q_len", shape.q_len, 1, kMaxIndex);
  require_size("kv_len", shape.kv_len, 1, kMaxIndex);
  if (shape.num_q_heads % shape.num_kv_heads != 0) {
    throw Error(ErrorCode::tensor,
                fmt::format("{} query heads cannot be shared by {} kv heads", shape.num_q_heads,
                            shape.num_kv_heads),
                "num_q_heads must be a whole multiple of num_kv_heads");
  }
  require_index_range("q", shape.q_offset, shape.q_len);
  require_index_range("kv", shape.kv_offset, shape.kv_len);
}

}  // namespace tilewright
