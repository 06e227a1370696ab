#pragma once

#include <cstdint>

#include "../../verify/check.hpp"

namespace tilewright::test {

/// Sizes of calls whose elements tests change one by one.
inline constexpr std::int64_t kSmallRows = 20, kSmallDim = 16;
inline constexpr Shape kSmallShape{
    .batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .q_len = kSmallRows, .kv_len = 30};

inline verify::CheckOptions options_on_cpu() {
  verify::CheckOptions options;
  options.attention.device = Device::cpu();
  return options;
}

}  // namespace tilewright::test
