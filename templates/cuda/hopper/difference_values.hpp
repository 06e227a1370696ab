#pragma once

#include "cuda/hopper/threads.hpp"
#include "cuda/ptx/shared_memory.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/ptx/unknown_zero.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"
#include "kernel/engine.hpp"

// The value that score_mod has by the difference of indices. A tile of a warp, 16 rows and all columns, has as many
// differences as rows and columns less one, and its lanes find the value of each, side by side, in memory of the
// warp's own. Place p has the value of column p and row 15. A thread's two neighbouring columns have neighbouring
// places; a second copy of the values lies one place further, so that a pair is at a multiple of 8 bytes in one of
// them. The copies begin 16 banks apart: lanes of even rows read one copy while lanes of odd rows read the other.

namespace tw_kernel {

constexpr int kTileColumns = 4 * kColumns;
constexpr int kDifferencePlaces = kTileColumns + 15;
constexpr int kDifferencePitch = kTileColumns + (kTileColumns % 32 == 0 ? 16 : 32);
static_assert(kDifferencePitch % 32 == 16 && kDifferencePitch > kDifferencePlaces);
constexpr int kWarpDifferenceBytes = 2 * kDifferencePitch * 4;
static_assert(kDifferencesLieInOut ? kWarpDifferenceBytes <= 16 * kPanelRowBytes
                                   : kDifferenceBytes == kConsumers * 4 * kWarpDifferenceBytes,
              "the tactic has room for them");

class DifferenceValues {
 public:
  // A thread's values, in the order of its columns.
  class Reader {
   public:
    // from: address of the pair of its first column, in row 1
    explicit __forceinline__ Reader(unsigned from) : from_(from), of_row_{load_shared_2(from), {}} {}

    // To column j, from the one before.
    __forceinline__ void advance(int j) {
      if (j % 2 == 1) return;
      from_ += 8 * 4;  // as far as from row 1 to row 0
      of_row_[1] = of_row_[0];
      of_row_[0] = load_shared_2(from_);
    }
    __forceinline__ float of(int i, int j) const { return j % 2 == 0 ? of_row_[i].x : of_row_[i].y; }

   private:
    unsigned from_;
    float2 of_row_[kRows];
  };

  // values: address of the warp's
  explicit __forceinline__ DifferenceValues(unsigned values) : values_(values) {}

  // value_of: takes a place
  template <typename ValueOf>
  __forceinline__ void find(const ValueOf& value_of) const {
    const int lane = own_lane();
    float found[kRounds];
#pragma unroll
    for (int i = 0; i < kRounds; ++i) found[i] = value_of(place_of(lane, i));
    if (kDifferencesLieInOut) wait_until_stores_read();
    __syncwarp();  // all lanes have read the values of the tile before
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      store_shared(values_ + place_of(lane, i) * 4, found[i]);
      store_shared(values_ + kCopyBytes + place_of(lane, i) * 4 + 4, found[i]);
    }
    __syncwarp();  // all are there
  }

  // From column j on, which is even.
  __forceinline__ Reader from(int j) const { return Reader(first_pair() + j / 2 * 8 * 4); }

 private:
  static constexpr int kRounds = (kDifferencePlaces + 31) / 32;
  static constexpr unsigned kCopyBytes = kDifferencePitch * 4;

  // Asked anew in every tile: registers are short for what follows from it.
  static __forceinline__ int own_lane() { return as_unknown(static_cast<int>(lane())); }

  // Of a lane, in turn. A lane without a last place has the one before again.
  static __forceinline__ int place_of(int lane, int i) {
    const int place = i * 32 + lane;
    return i < kRounds - 1 || place < kDifferencePlaces ? place : place - 32;
  }
  static_assert(kRounds > 1);

  // Address of the pair of a thread's column 0, in row 1.
  __forceinline__ unsigned first_pair() const {
    const int lane = own_lane(), row = lane / 4, column = lane % 4 * 2;
    return values_ + (7 - row + column) * 4 + (row % 2 == 0 ? kCopyBytes + 4 : 0);
  }

  unsigned values_;  // of the warp
};

}  // namespace tw_kernel
