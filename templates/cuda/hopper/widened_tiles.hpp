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

// K of one byte becomes numbers of Q's type, V numbers of P's, exactly.
//
// A separate warpgroup does that, two warps for K and two for V. Three warpgroups that compute leave no room for it:
// then two warps of the producer's warpgroup widen both, K a tile ahead of V, as the products take them.

namespace tw_kernel {

class Preparer {
 public:
  __forceinline__ explicit Preparer(const Shared& shared) : shared_(shared) {}

  // Of the warps of the producer's warpgroup.
  static __forceinline__ bool takes_part() { return kProducersWiden && threadIdx.x / 32 >= 2; }

  __forceinline__ void run() {
    if constexpr (kPreparesInTurns) {
      if (!kProducersWiden && warp() >= kPreparersOfK) return;
      widen_in_turns();
    } else if (warp() < kPreparersOfK) {
      widen_all([this](unsigned count) { return widen_k(count); });
    } else {
      widen_all([this](unsigned count) { return widen_v(count); });
    }
  }

 private:
  static constexpr int kBroughtValuePanels = panels(kValueDim, kQBytes);  // panels of V as products take it

  static __forceinline__ int warp() { return static_cast<int>(threadIdx.x / 32 % 4); }

  template <typename Widen>
  static __forceinline__ void widen_all(const Widen& widen) {
    unsigned count = 0;
#pragma unroll 1
    while (widen(count)) ++count;
  }

  __forceinline__ void widen_in_turns() const {
    bool has_tile = widen_k(0);
#pragma unroll 1
    for (unsigned count = 1; has_tile; ++count) {
      has_tile = widen_k(count);
      widen_v(count - 1);
    }
  }

  // The next tile, after `count` others. False where none comes any more.
  __forceinline__ bool widen_k(unsigned count) const {
    Control& control = *shared_.control;
    return widen_next<QElement, kHeadPanels, kKBoxPanels>(count, control.brought_k, control.k_full, control.k_empty,
                                                          true);
  }
  __forceinline__ bool widen_v(unsigned count) const {
    Control& control = *shared_.control;
    return widen_next<WeightElement, kBroughtValuePanels, kVBoxPanels>(count, control.brought_v, control.v_full,
                                                                       control.v_empty, false);
  }

  // To: what elements become. kPanels: of 64 columns, that a widened tile has. kBoxPanels: of a box of bytes.
  template <typename To, int kPanels, int kBoxPanels>
  __forceinline__ bool widen_next(unsigned count, BroughtRing<true>& ring, unsigned long long (&full)[kStages],
                                  unsigned long long (&empty)[kStages], bool is_k) const {
    const PlaceInRing<kBroughtStages> from = {count};
    const PlaceInRing<kStages> to = {count};
    wait(shared_address(&ring.full[from.stage()]), from.parity(), "bytes to widen, stage", from.stage());
    if (ring.is_end[from.stage()]) return false;
    wait(shared_address(&empty[to.stage()]), to.parity() ^ 1, "an empty place for what is widened, stage",
         to.stage());
    // Consumers hear which tile it is where they hear that it is there.
    if (is_k && warp() % kPreparersOfK == 0 && lane() == 0) {
      shared_.control->kv_tile[to.stage()] = ring.kv_tile[from.stage()];
    }
    widen_tile<To, kPanels, kBoxPanels>(is_k ? shared_.brought_k(from.stage()) : shared_.brought_v(from.stage()),
                                        is_k ? shared_.k(to.stage()) : shared_.v(to.stage()));
    release(ring.empty[from.stage()]);
    fence_for_copies();  // products read what was written before
    release(full[to.stage()]);
    return true;
  }

  // A warp takes 8 rows of 64 columns at a time, of its own panels, or of its own groups of rows where there are fewer
  // panels than warps. Lanes have four chunks of 16 bytes of a row each. Lanes that access shared memory together, 8
  // after 8, have the rows r and r ^ 5: the swizzle then gives them 8 different places of a row of 128 bytes, both
  // where they read and where they write.
  template <typename To, int kPanels, int kBoxPanels>
  __forceinline__ void widen_tile(unsigned from, unsigned to) const {
    constexpr int kPanelStep = kPanels % 2 == 0 ? 2 : 1;
    constexpr int kGroupStep = kPreparersOfK / kPanelStep;
    static_assert(kKvTile % (8 * kGroupStep) == 0, "each warp has as many groups of rows");
    const int number = warp() % kPreparersOfK;
    const int group = number / kPanelStep;
    const unsigned pair = lane() / 8;
    const unsigned row = lane() / 4 % 2 == 0 ? pair : pair ^ 5;
    const unsigned chunk = lane() % 4;
#pragma unroll 1
    for (int panel = number % kPanelStep; panel < kPanels; panel += kPanelStep) {
      const unsigned column = panel % 2 * 4 + chunk;  // in chunks of a panel of bytes
      widen_groups<To, kGroupStep * group_distance(kBoxPanels), kGroupStep * kRowGroupBytes,
                   kKvTile / 8 / kGroupStep>(
          from + panel / 2 * panel_distance(kBoxPanels) + group * group_distance(kBoxPanels) + row * kPanelRowBytes +
              (column ^ row) * 16,
          to + panel * kPanelBytes + group * kRowGroupBytes + row * kPanelRowBytes, (2 * chunk ^ row) * 16,
          ((2 * chunk + 1) ^ row) * 16);
    }
  }

  // kRead, kWritten: bytes from a group of 8 rows to the next. A lane's first 8 numbers are written at `low`, the
  // others at `high`. It has several loads under way: what waits for each would take twice as long.
  template <typename To, int kRead, int kWritten, int kGroups>
  __forceinline__ void widen_groups(unsigned from, unsigned to, unsigned low, unsigned high) const {
    constexpr bool kHasFewRegisters = (kProducersWiden ? kProducerRegisters : kPreparerRegisters) < 56;
    constexpr int kMostAtOnce = kHasFewRegisters ? 2 : 4;
#pragma unroll 1
    for (int left = kGroups; left >= kMostAtOnce; left -= kMostAtOnce) {
      widen_at_once<To, kRead, kWritten, kMostAtOnce>(from, to, low, high);
      from += kMostAtOnce * kRead;
      to += kMostAtOnce * kWritten;
    }
    constexpr int kRest = kGroups % kMostAtOnce;
    if constexpr (kRest > 0) widen_at_once<To, kRead, kWritten, kRest>(from, to, low, high);
  }

  template <typename To, int kRead, int kWritten, int kGroups>
  static __forceinline__ void widen_at_once(unsigned from, unsigned to, unsigned low, unsigned high) {
    unsigned words[kGroups][4];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) load_shared_16(from + i * kRead, words[i]);
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      FourHalves halves[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) halves[j] = widen<To, KvElement>(words[i][j]);
      const unsigned written = to + i * kWritten;
      store_shared_16(written + low, halves[0].low, halves[0].high, halves[1].low, halves[1].high);
      store_shared_16(written + high, halves[2].low, halves[2].high, halves[3].low, halves[3].high);
    }
  }

  const Shared shared_;
};

}  // namespace tw_kernel
