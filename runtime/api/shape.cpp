#include "runtime/api/shape.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<int>::max();
// Kernels count up to the end of tiles that go beyond the last row or column.
constexpr std::int64_t kMaxIndex = kMaxCount - 1024;

void require_size(std::string_view name, std::int64_t size, std::int64_t greatest) {
  if (size >= 1 && size <= greatest) return;
  throw Error(ErrorCode::tensor,
              fmt::format("{} is {}; it must be from 1 to {}", name, size, greatest));
}

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
  require_size("batch", shape.batch, kMaxCount);
  require_size("num_q_heads", shape.num_q_heads, kMaxCount);
  require_size("num_kv_heads", shape.num_kv_heads, kMaxCount);
  require_size("q_len", shape.q_len, kMaxIndex);
  require_size("kv_len", shape.kv_len, kMaxIndex);
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
