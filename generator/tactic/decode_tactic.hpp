#pragma once

#include <cstdint>

#include "tactic.hpp"

namespace tilewright {

/// Rows of a tile of a decode kernel: each is a row of q in one of the query heads that share a
/// head of k and v. A sequence with more rows goes to prefill.
inline constexpr std::int64_t kDecodeRows = 16;

/// Whether sequences with few rows of q have a kernel of their own on GPUs: in packed layouts, with
/// 16-bit tensors of one type.
bool has_decode_kernel(const Spec& spec);

/// The tactic of forward_decode*.
DecodeTactic decode_tactic(const Spec& spec, const Target& target);

/// Columns that a block of threads works on side by side.
inline std::int64_t decode_columns(const DecodeTactic& tactic) {
  return tactic.warps * tactic.kv_tile;
}

/// Dynamic shared memory of a launch of the tactic, in bytes.
std::int64_t shared_bytes(const Spec& spec, const DecodeTactic& tactic);

}  // namespace tilewright
