#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/warpgroup.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// V of 8 bits, turned: a product of wgmma sums over what is contiguous in both operands where they have 8
// bits, and V's rows are what it sums over. Two warps turn tiles while the consumers compute with others.
//
// ldmatrix takes two columns of V for one element of 16 bits: transposed, a lane gets columns 2c and 2c + 1 of
// rows 2r and 2r + 1, from 8 rows further on the same. One byte permutation each gives four rows of one column.
// They are rows 2r, 2r + 1, 8 + 2r and 9 + 2r, which of every 16 rows become the rows 4r to 4r + 3: the order in
// which a lane has its weights (pack_weights). Nothing moves between lanes.

namespace tw_kernel {

class Preparer {
 public:
  __forceinline__ explicit Preparer(const Shared& shared) : shared_(shared) {}

  // Warps of the producer's warpgroup which bring nothing.
  static __forceinline__ bool takes_part() { return threadIdx.x / 32 >= 2; }

  __forceinline__ void run() {
    BroughtRing<true>& ring = shared_.control->brought_v;
    PlaceInRing<kBroughtStages> from;
    PlaceInRing<kStages> to;
#pragma unroll 1
    while (true) {
      wait(shared_address(&ring.full[from.stage()]), from.parity(), "V to turn, stage", from.stage());
      if (ring.is_end[from.stage()]) break;
      wait(shared_address(&shared_.control->v_empty[to.stage()]), to.parity() ^ 1,
           "an empty place for V turned, stage", to.stage());
      turn(shared_.brought_v(from.stage()), shared_.v(to.stage()));
      release(ring.empty[from.stage()]);
      fence_for_copies();  // products read what was written before
      release(shared_.control->v_full[to.stage()]);
      from.advance();
      to.advance();
    }
  }

 private:
  // A step turns 32 rows of a group of 16 columns. Of two neighbouring groups each warp has one.
  static constexpr int kRowsOfStep = 32;
  static constexpr int kSteps = kKvTile / kRowsOfStep;  // of the same columns
  static constexpr int kColumnsOfStep = 16;
  static constexpr int kColumnGroups = kValuePad / kColumnsOfStep;
  static_assert(kKvTile % kRowsOfStep == 0, "a step turns 32 rows");
  static_assert(kPreparersOfV == 2, "the number of a warp is the lowest bit of its chunks");

  // All steps of the same columns are on their way at once: ldmatrix takes longer than what follows it.
  __forceinline__ void turn(unsigned from, unsigned to) const {
    const unsigned warp = threadIdx.x / 32 - 2;
    const unsigned loads = first_load(from, warp);
    const unsigned stores = first_store(to, warp);
#pragma unroll
    for (int group = 0; group * kPreparersOfV < kColumnGroups; ++group) {
      if (group * kPreparersOfV + warp >= kColumnGroups) break;
      unsigned pairs[kSteps][4];
#pragma unroll
      for (int step = 0; step < kSteps; ++step) load_step(loads, group, step, pairs[step]);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) store_step(stores, group, step, pairs[step]);
    }
  }

  // Where a lane reads in the first step, for a warp's first columns: lane l row l of V. Other columns are other chunks
  // of the row, and a chunk's number is XORed with the row's: so is what leads from one to another.
  static __forceinline__ unsigned first_load(unsigned from, unsigned warp) {
    return from + lane() * kPanelRowBytes + (warp ^ lane() % 8) * 16;
  }
  static __forceinline__ void load_step(unsigned loads, int group, int step, unsigned (&pairs)[4]) {
    constexpr int kGroupsOfPanel = 8 / kPreparersOfV;  // a warp's
    const unsigned of_group = loads ^ group % kGroupsOfPanel * kPreparersOfV * 16;
    const unsigned panel = group / kGroupsOfPanel * kPanelBytes;
    load_matrices_transposed(of_group + panel + step * kRowsOfStep * kPanelRowBytes, pairs);
  }

  // Where it writes likewise: lane l row l % 8 of matrix l / 8, the even columns with 16 rows of V, the odd ones, then
  // both with the next 16.
  static __forceinline__ unsigned first_store(unsigned to, unsigned warp) {
    const unsigned column = lane() % 8 * 2 + lane() / 8 % 2;
    return to + (warp * kColumnsOfStep + column) * kPanelRowBytes + (lane() / 16 ^ column % 8) * 16;
  }
  static __forceinline__ void store_step(unsigned stores, int group, int step, const unsigned (&pairs)[4]) {
    constexpr int kChunksOfStep = kRowsOfStep / 16;
    const unsigned of_step = stores ^ step * kChunksOfStep * 16;
    const unsigned turned[4] = {
        __byte_perm(pairs[0], pairs[1], 0x6420), __byte_perm(pairs[0], pairs[1], 0x7531),
        __byte_perm(pairs[2], pairs[3], 0x6420), __byte_perm(pairs[2], pairs[3], 0x7531)};
    store_matrices(of_step + group * kPreparersOfV * kColumnsOfStep * kPanelRowBytes, turned);
  }

  const Shared shared_;
};

}  // namespace tw_kernel
