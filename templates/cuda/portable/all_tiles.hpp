#pragma once

#include "abi/cuda_forward.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"

// The kv tiles that a q tile visits without a block mask: all of them, from the first to the last.

namespace tw_kernel {

class AllTiles {
 public:
  __forceinline__ AllTiles(const ForwardArguments&, const QTile&, const HeadPointers&, int kv_len)
      : kv_len_(kv_len) {}

  // The i-th tile from the current one on.
  __forceinline__ KvTile ahead(int i) const {
    const int first = first_ + i * kKvTile;
    return first < kv_len_ ? KvTile(first, kHasMaskMod) : KvTile::none();
  }

  __forceinline__ void advance() { first_ += kKvTile; }
  __forceinline__ void refill() {}

 private:
  int first_ = 0;
  int kv_len_;
};

}  // namespace tw_kernel
