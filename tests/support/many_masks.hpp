#pragma once

#include <cstdint>
#include <vector>

#include "packed_batch.hpp"

// Masks of every family that intervals decide, in one spec.

namespace tilewright::test {

/// One spec for all masks that intervals decide, so that kernels are compiled once.
inline Spec many_masks() {
  return {.dtype = f32,
          .head_dim = 16,
          .mask_mod = R"(
            if (kind == 0) return true;
            if (kind == 1) return q_idx >= kv_idx;
            if (kind == 2) return q_idx >= kv_idx && q_idx - kv_idx < 40;
            if (kind == 3) return doc[q_idx] == doc[kv_idx];
            if (kind == 4) return q_idx >= kv_idx || kv_idx < 50;
            if (kind == 5) return abs(q_idx - kv_idx) < 70;
            if (kind == 6) return q_idx - kv_idx >= kv_len / 2;
            if (kind == 7) return (q_idx - kv_idx) % 3 == 0 && q_idx >= kv_idx;
            if (kind == 8) return kv_idx < q_len - q_idx;
            if (kind == 9) return kv_idx < 10 || q_idx / 64 == kv_idx / 64;
            return false;)",
          .buffers = {{"doc", {.dtype = i32, .shape = {NamedDim::kv_len}}}},
          .scalars = {{"kind", {.dtype = i32}}},
          .block = {16, 16},
          .outputs = {.lse = true}};
}

inline constexpr int kMasks = 11;  // the last keeps nothing

inline Tensor documents(std::int64_t length) {
  std::vector<int> ids;
  for (std::int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int>(i * i / 9000));
  return packed_calls::int_tensor(ids);
}

}  // namespace tilewright::test
