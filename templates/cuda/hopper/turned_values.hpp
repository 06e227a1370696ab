#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/pipeline.hpp"
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
  // Of each of its steps a warp turns 32 rows of 16 columns.
  static constexpr int kRowsOfStep = 32;
  static constexpr int kSteps = kKvTile / kRowsOfStep;  // of the same columns
  static constexpr int kColumnsOfStep = 16;
  static_assert(kKvTile % kRowsOfStep == 0, "a step turns 32 rows");

  __forceinline__ void turn(unsigned from, unsigned to) const {
    const int warp = static_cast<int>(threadIdx.x / 32) - 2;
#pragma unroll 1
    for (int columns = warp; columns < kValuePad / kColumnsOfStep; columns += kPreparersOfV) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) turn_step(from, to, columns, step);
    }
  }

  // Lane l gives the places of row l of V, and of row l % 8 of matrix l / 8 of the turned ones: the even columns
  // with 16 rows, the odd ones, then both with the next 16 rows.
  __forceinline__ void turn_step(unsigned from, unsigned to, int columns, int step) const {
    const unsigned row = step * kRowsOfStep + lane();
    const unsigned chunk = columns % 8;
    const unsigned panel = columns / 8 * kPanelBytes;
    unsigned pairs[4];
    load_matrices_transposed(from + panel + row * kPanelRowBytes + (chunk ^ row % 8) * 16, pairs);
    const unsigned turned[4] = {
        __byte_perm(pairs[0], pairs[1], 0x6420), __byte_perm(pairs[0], pairs[1], 0x7531),
        __byte_perm(pairs[2], pairs[3], 0x6420), __byte_perm(pairs[2], pairs[3], 0x7531)};
    const unsigned column = columns * kColumnsOfStep + lane() % 8 * 2 + lane() / 8 % 2;
    const unsigned rows = step * 2 + lane() / 16;  // 16 of them are 16 bytes
    store_matrices(to + column * kPanelRowBytes + (rows ^ column % 8) * 16, turned);
  }

  const Shared shared_;
};

}  // namespace tw_kernel
