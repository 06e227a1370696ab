#pragma once

#include <cstdint>

#include "tactic.hpp"

namespace tilewright {

/// Rows of a tile of a decode kernel: each is a row of q in one of the query heads that share a
/// head of k and v. A sequence with more rows goes to prefill.
inline constexpr std::int64_t kDecodeRows = 16;

/// Whether the rows of all query heads that share a head of k and v are one tile of a decode
/// kernel.
constexpr bool fits_decode_rows(std::int64_t q_len, std::int64_t num_q_heads,
                                std::int64_t num_kv_heads) {
  if (q_len < 1 || num_kv_heads < 1) return false;
  const std::int64_t group = num_q_heads / num_kv_heads;
  return group >= 1 && group <= kDecodeRows && q_len <= kDecodeRows / group;
}

/// Whether sequences with few rows of q have a separate kernel on GPUs: with 16-bit tensors of
/// one type, or k and v of one byte without new rows of another type (kv_new). Dense calls take it
/// where AttentionOptions::decode is set.
bool has_decode_kernel(const Spec& spec);

/// The tactic of forward_decode*.
DecodeTactic decode_tactic(const Spec& spec, const Target& target);

/// Columns that a block of threads works on side by side.
inline std::int64_t decode_columns(const DecodeTactic& tactic) {
  return tactic.warps * tactic.kv_tile;
}

/// Blocks of threads of a launch at most: one of them keeps a weight for the part of each other in
/// shared memory.
std::int64_t most_decode_blocks(const Spec& spec);

/// Dynamic shared memory of a launch of the tactic, in bytes.
std::int64_t shared_bytes(const Spec& spec, const DecodeTactic& tactic);

}  // namespace tilewright
