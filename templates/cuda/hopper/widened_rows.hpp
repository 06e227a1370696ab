#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/one_byte.hpp"
#include "cuda/ptx/halves.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// What one warp widens of a tile.

namespace tw_kernel {

// A warp widens 8 rows of 64 columns at a time. It has its own panels, or its own groups of rows if there are fewer
// panels than warps. Each lane has four chunks of 16 bytes of one row. The 8 lanes that access shared memory together
// have the rows r and r ^ 5, so the swizzle gives them 8 different places of a row of 128 bytes for reads and writes.
//
// Loads have a long latency while products read shared memory too. Narrow tensors are loaded one step ahead; wide ones
// have four groups in a step, whose loads are all in flight.
//
// kPanels: of 64 columns, that a widened tile has. kBoxPanels: of a box of bytes.
template <int kPanels, int kBoxPanels>
class WidenedRows {
  static constexpr int kPanelStep = kPanels % 2 == 0 ? 2 : 1;
  static constexpr int kGroupStep = kPreparersOfK / kPanelStep;
  static constexpr int kGroups = kKvTile / 8 / kGroupStep;  // of a panel
  static_assert(kKvTile % (8 * kGroupStep) == 0, "each warp has as many groups of rows");
  static constexpr bool kHasFewRegisters = (kProducersWiden ? kProducerRegisters : kPreparerRegisters) < 56;
  static constexpr bool kLoadsAhead = kPanels == 1;
  static constexpr int kMostAtOnce = kHasFewRegisters ? 1 : kLoadsAhead ? 2 : 4;
  static constexpr int kAtOnce = kGroups % kMostAtOnce == 0 ? kMostAtOnce : kGroups % 2 == 0 ? 2 : 1;
  static constexpr int kSteps = kGroups / kAtOnce;
  static constexpr int kRead = kGroupStep * group_distance(kBoxPanels);  // from a group to the next
  static constexpr int kWritten = kGroupStep * kRowGroupBytes;

 public:
  static constexpr int kPanelsOfWarp = kPanels / kPanelStep;
  using Bytes = unsigned[kAtOnce][4];  // of a step

  // from, to: the tile as it came, and widened. warp: of those that widen it. number: of the warp's panels.
  __forceinline__ WidenedRows(unsigned from, unsigned to, int warp, int number) {
    const int panel = warp % kPanelStep + number * kPanelStep;
    const int group = warp / kPanelStep;
    // As if it were another each time: what follows from it has no registers to stay in.
    unsigned of_warp = lane();
    asm volatile("" : "+r"(of_warp));
    const unsigned pair = of_warp / 8;
    const unsigned row = of_warp / 4 % 2 == 0 ? pair : pair ^ 5;
    const unsigned chunk = of_warp % 4;
    const unsigned column = panel % 2 * 4 + chunk;  // in chunks of a panel of bytes
    from_ = from + panel / 2 * panel_distance(kBoxPanels) + group * group_distance(kBoxPanels) +
            row * kPanelRowBytes + (column ^ row) * 16;
    to_ = to + panel * kPanelBytes + group * kRowGroupBytes + row * kPanelRowBytes + (2 * chunk ^ row) * 16;
  }

  // The first step's bytes, where they are loaded ahead.
  __forceinline__ void load(Bytes& bytes) const {
    if constexpr (kLoadsAhead) load_step(0, bytes);
  }

  // All of the panel. bytes: what was loaded.
  template <typename To>
  __forceinline__ void widen(Bytes& bytes) {
    if constexpr (kLoadsAhead) {
      widen_loaded<To>(bytes);
    } else {
#pragma unroll 1
      for (int left = kSteps; left > 0; --left) {
        load_step(0, bytes);
        store_step<To>(0, bytes);
        advance(1);
      }
    }
  }

 private:
  template <typename To>
  __forceinline__ void widen_loaded(Bytes& bytes) {
#pragma unroll 1
    for (int left = kSteps / 2; left > 0; --left) {
      Bytes next;
      load_step(1, next);
      store_step<To>(0, bytes);
      if (kSteps % 2 != 0 || left > 1) load_step(2, bytes);
      store_step<To>(1, next);
      advance(2);
    }
    if (kSteps % 2 != 0) store_step<To>(0, bytes);
  }

  __forceinline__ void advance(int steps) {
    from_ += steps * kAtOnce * kRead;
    to_ += steps * kAtOnce * kWritten;
  }

  __forceinline__ void load_step(int step, Bytes& bytes) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) load_shared_16(from_ + (step * kAtOnce + i) * kRead, bytes[i]);
  }

  // Of a lane's two chunks the second one's number is the first one's but for the lowest bit, swizzled too.
  template <typename To>
  __forceinline__ void store_step(int step, const Bytes& bytes) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      FourHalves halves[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) halves[j] = tw_kernel::widen<To, KvElement>(bytes[i][j]);
      const unsigned distance = (step * kAtOnce + i) * kWritten;
      store_shared_16(to_ + distance, halves[0].low, halves[0].high, halves[1].low, halves[1].high);
      store_shared_16((to_ ^ 16) + distance, halves[2].low, halves[2].high, halves[3].low, halves[3].high);
    }
  }

  unsigned from_;
  unsigned to_;
};

}  // namespace tw_kernel
