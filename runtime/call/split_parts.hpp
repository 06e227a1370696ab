#pragma once

#include <cstdint>

namespace tilewright {

/// The kernel that splits q tiles, on a device.
struct SplitLaunch {
  std::int64_t multiprocessors = 0;
  std::int64_t q_tile = 0;  ///< rows; 0: the spec has no such kernel there
  std::int64_t kv_tile = 0;
  std::int64_t value_dim = 0;
  std::int64_t work_side = 0;  ///< of packed calls: rows of q of an entry of a plan's work

  /// Bytes of the partial results of a call.
  std::int64_t partial_bytes(std::int64_t q_tiles, std::int64_t parts) const;
  std::int64_t warpgroups() const { return q_tile / 64; }
};

/// How many parts each q tile of a call is cut into, from its sizes alone; 1: none is.
/// docs/decisions/0080-splits-of-prefill.md has the reasons.
/// @param kv_len columns of the longest sequence
std::int64_t split_parts(const SplitLaunch& launch, std::int64_t q_tiles, std::int64_t kv_len);

}  // namespace tilewright
