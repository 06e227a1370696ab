#pragma once

#include <cstdint>

#include "features.hpp"

namespace tilewright::verify::fuzz {

/// Greatest magnitude of q_idx and kv_idx, and greatest lengths and heads, that snippets are made
/// for; a call beyond them may overflow.
inline constexpr std::int64_t kMaxIndex = 4000;
inline constexpr std::int64_t kMaxLength = 2048;
inline constexpr std::int64_t kMaxHeads = 64;
/// Values of the scalars that snippets declare: i32 from 1 to 64, f32 from 0.5 to 2.
inline constexpr std::int64_t kMaxIntegerScalar = 64;

/// What a snippet is asked to hold. Bits are those of features.hpp; what is not asked for may be
/// there too.
struct SnippetWish {
  Features features = {};
  bool is_body = false;
  /// q_idx and kv_idx start at 0, so that they index buffers of q_len and kv_len as they are.
  bool no_offsets = false;
  /// Of a packed spec: q_token and kv_token are there, from 0 to kMaxIndex. Positions have offsets.
  bool is_packed = false;
};

inline bool is_wanted(const SnippetWish& wish, Factor factor, int value) {
  return (bits(wish.features, factor) >> value & 1) != 0;
}

}  // namespace tilewright::verify::fuzz
