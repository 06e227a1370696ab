#pragma once

// Q tiles whose kv tiles several blocks of threads share. Runtime and kernels share this file.

namespace tilewright::abi {

/// An item is a part of a q tile's kv tiles; item / parts is the q tile's number. A warpgroup of each item
/// stores its 64 rows as its threads have them, relative to the rows' maxima; the one whose item comes last adds up
/// all parts in their order.
struct SplitWork {
  float* partial;     // [items][warpgroups][split_group_floats]
  unsigned* arrived;  // [q tiles][warpgroups]: items that have stored theirs; 0 between launches
  int parts;          // of a q tile
  int reserved;       // 0
};

constexpr int kSplitGroupRows = 64;  // of a warpgroup

/// Rows of O, and for each of 128 threads its share of two rows' maxima and sums.
/// @param value_pad v_head_dim as a multiple of 16
constexpr long long split_group_floats(long long value_pad) {
  return kSplitGroupRows * value_pad + 128 * 2 * 2;
}

/// Bytes of `partial`.
constexpr long long split_partial_bytes(long long q_tiles, long long parts, long long groups, long long value_pad) {
  return q_tiles * parts * groups * split_group_floats(value_pad) * static_cast<long long>(sizeof(float));
}

}  // namespace tilewright::abi
