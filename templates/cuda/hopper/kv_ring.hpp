#pragma once

#include "cuda/hopper/masked_tiles.hpp"
#include "cuda/hopper/pipeline.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/hopper/warpgroup_order.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "kernel/tiles.hpp"

// A consumer's way through the rings of K and V.

namespace tw_kernel {

class KvRing {
 public:
  // Whether tiles may be left out (pass_by).
  static constexpr bool kMayLeaveOut = kLeavesOut;
  // Whether out is 0 at the first tile of each run.
  static constexpr bool kBeginsEmpty = false;

  // number: of the warpgroup.
  __forceinline__ KvRing(const Shared& shared, int number) : shared_(shared), number_(number) {}

  // Of the tile at hand, in the ring of K and in that of V.
  __forceinline__ const KvPlace& place() const { return place_; }
  // Known where its K is there.
  __forceinline__ Tiles::Tile tile() const { return control().kv_tile[place_.stage]; }
  __forceinline__ void advance() { place_.advance(); }

  __forceinline__ void wait_for_k() const {
    wait(shared_address(&control().k_full[place_.stage]), place_.parity, "K, stage",
         place_.stage);
  }
  __forceinline__ void wait_for_v(const KvPlace& place) const {
    wait(shared_address(&control().v_full[place.stage]), place.parity, "V, stage",
         place.stage);
  }

  // The warp is done with K of the tile at hand, with V of a tile.
  __forceinline__ void give_back_k() const { release(control().k_empty[place_.stage]); }
  __forceinline__ void give_back_v(const KvPlace& place) const {
    release(control().v_empty[place.stage]);
  }

  // A tile whose K is there, and with nothing to multiply by V of the tile before: as the places of V
  // are filled in turn, it would never be given back for that of this tile.
  __forceinline__ void pass_by() {
    WarpgroupOrder::wait_for_mine(number_);
    WarpgroupOrder::signal_next(number_);
    give_back_k();
    wait_for_v(place_);
    give_back_v(place_);
    place_.advance();
  }

  // For a warpgroup none of whose rows exists: gives back what the others compute with.
  __forceinline__ void pass_by_all(int kv_tiles) {
    bool is_last = false;
#pragma unroll 1
    for (int i = 0; !is_last; ++i) {
      wait_for_k();  // then it is known which tile it is
      is_last = Tiles::is_last(tile(), i, kv_tiles);
      pass_by();
    }
  }

 private:
  __forceinline__ Control& control() const { return *shared_.control; }

  const Shared shared_;
  const int number_;
  KvPlace place_;
};

}  // namespace tw_kernel
