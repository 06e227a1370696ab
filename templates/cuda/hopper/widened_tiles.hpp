#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/widened_rows.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "kernel/configuration.hpp"

// K of one byte becomes numbers of Q's type, V numbers of P's, exactly.
//
// A separate warpgroup does that, two warps for K and two for V, or all for both. Three warpgroups that compute leave
// no registers for it, nor do two with more than 192 columns of out: then two warps of the producer's warpgroup widen
// both. Warps that widen both take K a tile ahead of V, as the products do.

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
  static __forceinline__ int number() { return warp() % kPreparersOfK; }  // among those of a tile

  template <typename Widen>
  static __forceinline__ void widen_all(const Widen& widen) {
    unsigned count = 0;
#pragma unroll 1
    while (widen(count)) ++count;
  }

  __forceinline__ void widen_in_turns() const {
    constexpr unsigned kEnd = 1u << 31;  // a bit of the count: a flag of its own would be a register more
    unsigned count = 0;
#pragma unroll 1
    while ((count & kEnd) == 0) {
      if (!widen_k(count)) count |= kEnd;
      const unsigned tiles_of_k = count & ~kEnd;
      if (tiles_of_k > 0) widen_v(tiles_of_k - 1);
      ++count;
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
    using Rows = WidenedRows<kPanels, kBoxPanels>;
    const int stage = PlaceInRing<kBroughtStages>{count}.stage();
    const PlaceInRing<kStages> to = {count};
    const unsigned brought = is_k ? shared_.brought_k(stage) : shared_.brought_v(stage);
    const unsigned widened = is_k ? shared_.k(to.stage()) : shared_.v(to.stage());
    Rows rows(brought, widened, number(), 0);
    wait(shared_address(&ring.full[stage]), PlaceInRing<kBroughtStages>{count}.parity(), "bytes to widen, stage",
         stage);
    typename Rows::Bytes bytes;
    rows.load(bytes);  // they are on their way while a place is waited for
    if (ring.is_end[stage]) return false;
    wait(shared_address(&empty[to.stage()]), to.parity() ^ 1, "an empty place for what is widened, stage",
         to.stage());
    // Consumers hear which tile it is where they hear that it is there.
    if (is_k && number() == 0 && lane() == 0) shared_.control->kv_tile[to.stage()] = ring.kv_tile[stage];
    rows.template widen<To>(bytes);
#pragma unroll 1
    for (int i = 1; i < Rows::kPanelsOfWarp; ++i) {
      rows = Rows(brought, widened, number(), i);
      rows.load(bytes);
      rows.template widen<To>(bytes);
    }
    release(ring.empty[stage]);
    fence_for_copies();  // products read what was written before
    release(full[to.stage()]);
    return true;
  }

  const Shared shared_;
};

}  // namespace tw_kernel
