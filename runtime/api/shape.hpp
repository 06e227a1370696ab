#pragma once

#include <cstdint>
#include <string>

namespace tilewright {

/// The sizes of one call of attention.
struct Shape {
  std::int64_t batch = 1;
  std::int64_t num_q_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t q_offset = 0;   ///< q_idx = row + q_offset
  std::int64_t kv_offset = 0;  ///< kv_idx = column + kv_offset

  /// "batch 2, heads 8/2, q_len 127, kv_len 1023", offsets where they are not 0.
  std::string describe() const;

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// Refuses what no kernel can run: a size below 1 or so large that an index overflows an int, query
/// heads that are no multiple of kv heads, indices with offset that leave int's range.
/// @throws Error with code tensor
void validate(const Shape& shape);

}  // namespace tilewright
