#pragma once

#include "abi/cuda_forward.hpp"
#include "abi/cuda_tensor_maps.hpp"
#include "cuda/attention/q_tile.hpp"
#include "cuda/hopper/layout.hpp"
#include "cuda/language.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "kernel/boxes.hpp"
#include "kernel/configuration.hpp"

// How a tile of K or V is brought where its rows lie one after another: a box for each panel.

namespace tw_kernel {

// One thread brings all tiles.
struct Loader {
  static constexpr int kCount = 1;
  static constexpr int kLoaders = 1;

  __forceinline__ explicit Loader(const ForwardArguments&) {}

  static __forceinline__ bool takes_part() { return threadIdx.x == 0; }
  static __forceinline__ bool speaks() { return true; }
  static __forceinline__ bool leads() { return true; }
};

// A tile's rows from `first` on.
class KvBox {
 public:
  __forceinline__ KvBox(const QTile& q_tile, int kv_len, int first)
      : place_(q_tile), kv_len_(kv_len), first_(first) {}

  // Brings them to shared memory.
  // full: completed by the copies
  __forceinline__ void load_k(unsigned to, const TensorMaps& maps, unsigned full, int h, int b) const {
    load<kBroughtKPanels>(to, maps.k, full, h, b);
  }
  __forceinline__ void load_v(unsigned to, const TensorMaps& maps, unsigned full, int h, int b) const {
    load<kBroughtVPanels>(to, maps.v, full, h, b);
  }

 private:
  template <int kPanels>
  __forceinline__ void load(unsigned to, const TensorMap& map, unsigned full, int h, int b) const {
    arrive_and_expect(full, kPanels * kPanelBytes);
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      load_rows(to + panel * kPanelBytes, map, full, panel * panel_columns(kKvBytes),
                box_row(place_.kv_begin(), kv_len_, first_), h, b);
    }
  }

  const QTile& place_;
  int kv_len_;
  int first_;
};

TW_INLINE KvBox k_box(const Loader&, const QTile& q_tile, int kv_len, int first) {
  return {q_tile, kv_len, first};
}
TW_INLINE KvBox v_box(const Loader&, const QTile& q_tile, int kv_len, int first) {
  return {q_tile, kv_len, first};
}

}  // namespace tw_kernel
