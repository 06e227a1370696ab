#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/one_byte.hpp"
#include "cuda/ptx/halves.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// K of one byte becomes numbers of Q's type, V numbers of P's, exactly, by a separate warpgroup. Its four warps share each
// tile: consumers wait for K the longest, and two warps would take twice as long.

namespace tw_kernel {

static_assert(kPreparers == 4 && kPreparingGroups == 1, "all warps of a warpgroup");

class Preparer {
 public:
  __forceinline__ explicit Preparer(const Shared& shared) : shared_(shared) {}

  // It is no part of the producer's warpgroup.
  static __forceinline__ bool takes_part() { return false; }

  __forceinline__ void run() {
    Control& control = *shared_.control;
    PlaceInRing<kBroughtStages> from;
    PlaceInRing<kStages> to;
#pragma unroll 1
    while (true) {
      if (!wait_for_bytes(control.brought_k, from)) break;
      wait_for_place(control.k_empty, to);
      // Consumers hear which tile it is where they hear that it is there.
      if (warp() == 0 && lane() == 0) control.kv_tile[to.stage()] = control.brought_k.kv_tile[from.stage()];
      widen_tile<QElement, kHeadPanels, kKBoxPanels>(shared_.brought_k(from.stage()), shared_.k(to.stage()));
      give(control.brought_k, control.k_full, from, to);
      wait_for_bytes(control.brought_v, from);
      wait_for_place(control.v_empty, to);
      widen_tile<WeightElement, kBroughtValuePanels, kVBoxPanels>(shared_.brought_v(from.stage()),
                                                                  shared_.v(to.stage()));
      give(control.brought_v, control.v_full, from, to);
      from.advance();
      to.advance();
    }
  }

 private:
  static constexpr int kBroughtValuePanels = panels(kValueDim, kQBytes);  // panels of V as products take it

  static __forceinline__ int warp() { return static_cast<int>(threadIdx.x / 32 % 4); }

  // False where there is no tile left.
  static __forceinline__ bool wait_for_bytes(BroughtRing<true>& ring, const PlaceInRing<kBroughtStages>& from) {
    wait(shared_address(&ring.full[from.stage()]), from.parity(), "bytes to widen, stage", from.stage());
    return !ring.is_end[from.stage()];
  }
  static __forceinline__ void wait_for_place(unsigned long long (&empty)[kStages], const PlaceInRing<kStages>& to) {
    wait(shared_address(&empty[to.stage()]), to.parity() ^ 1, "an empty place for what is widened, stage", to.stage());
  }
  static __forceinline__ void give(BroughtRing<true>& ring, unsigned long long (&full)[kStages],
                                   const PlaceInRing<kBroughtStages>& from, const PlaceInRing<kStages>& to) {
    release(ring.empty[from.stage()]);
    fence_for_copies();  // products read what was written before
    release(full[to.stage()]);
  }

  // A warp takes 8 rows of 64 columns at a time. Lanes have four chunks of 16 bytes of a row each. Lanes that access
  // shared memory together, 8 after 8, have the rows r and r ^ 5: the swizzle then gives them 8 different places of a
  // row of 128 bytes, both where they read and where they write.
  template <typename To, int kPanels, int kBoxPanels>
  __forceinline__ void widen_tile(unsigned from, unsigned to) const {
    constexpr int kPanelStep = kPanels % 2 == 0 ? 2 : 1;
    constexpr int kWarps = kPreparers / kPanelStep;  // that share a panel
    constexpr int kGroups = kKvTile / 8;
    const int part = warp() / kPanelStep;
    const int group = part * kGroups / kWarps, count = (part + 1) * kGroups / kWarps - group;
    const unsigned pair = lane() / 8;
    const unsigned row = lane() / 4 % 2 == 0 ? pair : pair ^ 5;
    const unsigned chunk = lane() % 4;
#pragma unroll 1
    for (int panel = warp() % kPanelStep; panel < kPanels; panel += kPanelStep) {
      const unsigned column = panel % 2 * 4 + chunk;  // in chunks of a panel of bytes
      widen_groups<To, group_distance(kBoxPanels), kGroups % kWarps == 0 ? kGroups / kWarps : 1>(
          from + panel / 2 * panel_distance(kBoxPanels) + group * group_distance(kBoxPanels) + row * kPanelRowBytes +
              (column ^ row) * 16,
          to + panel * kPanelBytes + group * kRowGroupBytes + row * kPanelRowBytes, (2 * chunk ^ row) * 16,
          ((2 * chunk + 1) ^ row) * 16, count);
    }
  }

  // kRead: bytes from a group of 8 rows to the next. kDivisor: of `count`, groups. A lane's first 8 numbers are written
  // at `low`, the others at `high`. It has several loads under way: what waits for each would take twice as long.
  template <typename To, int kRead, int kDivisor>
  __forceinline__ void widen_groups(unsigned from, unsigned to, unsigned low, unsigned high, int count) const {
    constexpr int kAtOnce = kDivisor % 4 == 0 ? 4 : kDivisor % 2 == 0 ? 2 : 1;
#pragma unroll 1
    for (int group = 0; group < count; group += kAtOnce) {
      unsigned words[kAtOnce][4];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) load_shared_16(from + i * kRead, words[i]);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        FourHalves halves[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) halves[j] = widen<To, KvElement>(words[i][j]);
        const unsigned written = to + i * kRowGroupBytes;
        store_shared_16(written + low, halves[0].low, halves[0].high, halves[1].low, halves[1].high);
        store_shared_16(written + high, halves[2].low, halves[2].high, halves[3].low, halves[3].high);
      }
      from += kAtOnce * kRead;
      to += kAtOnce * kRowGroupBytes;
    }
  }

  const Shared shared_;
};

}  // namespace tw_kernel
