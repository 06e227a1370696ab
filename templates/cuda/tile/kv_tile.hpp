#pragma once

// One kv tile, packed into one register because the accumulators need all others.

namespace tw_kernel {

class KvTile {
 public:
  KvTile() = default;
  __forceinline__ KvTile(int first, bool partial) : code_(first | static_cast<int>(partial)) {}
  static __forceinline__ KvTile none() { return {-1, false}; }
  // A sentinel past the last tile; it has no elements.
  static __forceinline__ KvTile sentinel(int first) { return {first, false}; }

  __forceinline__ bool exists() const { return code_ >= 0; }
  // Its first kv row.
  __forceinline__ int first() const { return code_ & ~1; }
  // mask_mod decides over its elements.
  __forceinline__ bool partial() const { return (code_ & 1) != 0; }

 private:
  int code_;  // first, which is even, and partial in the lowest bit; negative: no tile
};

}  // namespace tw_kernel
