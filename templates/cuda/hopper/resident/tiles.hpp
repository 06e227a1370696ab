#pragma once

#include "cuda/attention/modify.hpp"
#include "cuda/hopper/places.hpp"
#include "cuda/hopper/resident/pipeline.hpp"
#include "cuda/hopper/resident/work.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/ptx/mbarrier.hpp"
#include "cuda/ptx/shared_address.hpp"
#include "cuda/ptx/tensor_copy.hpp"
#include "cuda/tile/kv_tile.hpp"
#include "kernel/configuration.hpp"
#include "kernel/unit_proofs.hpp"

// A warpgroup's tiles of K and V, which stay where they are from unit to unit.

namespace tw_kernel {

// In place of KvRing (kv_ring.hpp).
class ResidentTiles {
 public:
  // A block of the mask has several tiles, of which a unit may keep nothing. Where intervals have looked at each, few
  // are left.
  static constexpr bool kMayLeaveOut = kHasMaskMod && kBlockKv > kKvTile && !kProvesTiles;
  static constexpr bool kBeginsEmpty = true;  // a unit has one run

  __forceinline__ ResidentTiles(const Shared& shared, int) : shared_(shared) {}

  // Gives back at once what neither this unit nor a later one of the item visits. It waits until the item's tile is
  // there: a warpgroup without rows would give back the next item's before the other gave back this one's.
  __forceinline__ void begin(const TilesOfUnit& tiles) {
    phases_ ^= released_;
    has_k_ &= ~released_;
    has_v_ &= ~released_;
    kept_ = tiles.kept;
    partial_ = tiles.partial;
    masked_ = tiles.masked;
    released_ = tiles.released;
#pragma unroll 1
    for (unsigned left = released_ & ~kept_; left != 0; left &= left - 1) {
      const int t = __ffs(static_cast<int>(left)) - 1;
      const KvPlace place = {t, phases_ >> t & 1u};
      wait_for_k(place);
      wait_for_v(place);
      release(control().k_empty[t]);
      release(control().v_empty[t]);
    }
    take_last();
  }

  // Whether a tile of the unit is at hand.
  __forceinline__ bool has_tile() const { return kept_ != 0; }
  __forceinline__ const KvPlace& place() const { return place_; }
  __forceinline__ KvTile tile() const {
    return {place_.stage * kKvTile, (partial_ >> place_.stage & 1u) != 0};
  }
  // Whether elements of it may be dropped, or rows or columns of it do not exist.
  __forceinline__ bool masked() const { return (masked_ >> place_.stage & 1u) != 0; }
  // A tile of which the unit keeps nothing. Its K is there.
  __forceinline__ void pass_by() {
    if ((released_ >> place_.stage & 1u) != 0) {
      wait_for_v(place_);
      give_back_k();
      give_back_v(place_);
    }
    advance();
  }
  __forceinline__ void advance() {
    kept_ ^= 1u << place_.stage;
    take_last();
  }

  // Once for each tile of an item: asking its barrier takes some 80 cycles where the tile is there, too.
  __forceinline__ void wait_for_k() { wait_for_k(place_); }
  __forceinline__ void wait_for_k(const KvPlace& place) {
    if ((has_k_ >> place.stage & 1u) != 0) return;
    wait(shared_address(&control().k_full[place.stage]), place.parity, "K, tile", place.stage);
    has_k_ |= 1u << place.stage;
  }
  __forceinline__ void wait_for_v(const KvPlace& place) {
    if ((has_v_ >> place.stage & 1u) != 0) return;
    wait(shared_address(&control().v_full[place.stage]), place.parity, "V, tile", place.stage);
    has_v_ |= 1u << place.stage;
  }

  __forceinline__ void give_back_k() const {
    release_if((released_ >> place_.stage & 1u) != 0, control().k_empty[place_.stage]);
  }
  __forceinline__ void give_back_v(const KvPlace& place) const {
    release_if((released_ >> place.stage & 1u) != 0, control().v_empty[place.stage]);
  }

 private:
  __forceinline__ Control& control() const { return *shared_.control; }

  // Visits go from the last tile to the first, as places become full.
  __forceinline__ void take_last() {
    if (kept_ == 0) return;
    place_.stage = 31 - __clz(static_cast<int>(kept_));
    place_.parity = phases_ >> place_.stage & 1u;
  }

  const Shared shared_;
  unsigned kept_ = 0;      // of the unit, that it has not visited
  unsigned partial_ = 0;
  unsigned masked_ = 0;
  unsigned released_ = 0;
  unsigned phases_ = 0;    // bit t: the parity of the phase in which place t is full with what the unit visits
  unsigned has_k_ = 0;     // bit t: the warpgroup has seen the item's tile in place t
  unsigned has_v_ = 0;
  KvPlace place_;
};

// In place of OneRun: every tile says for itself whether elements of it may be dropped. What a warpgroup stored last,
// its unit before, is given back while the first products of the unit at hand run: by then it is stored.
class TilesOneByOne {
 public:
  __forceinline__ explicit TilesOneByOne(int) {}
  __forceinline__ bool look_at(const KvTile&, const SnippetInputs&, const SnippetArguments&, bool masked) {
    give_back_stored();
    return masked;
  }
  __forceinline__ KvTile as_kv_tile(const KvTile& tile) const { return tile; }

  // empty: of the place of Q over which the unit's rows of out lie until they are stored
  __forceinline__ void is_being_stored(unsigned long long& empty) { stored_ = shared_address(&empty); }
  __forceinline__ void give_back_stored() {
    wait_until_stores_read();
    arrive_if(stored_ != 0 && lane() == 0, stored_);  // lane 0 sent the warp's rows
    stored_ = 0;
  }

 private:
  unsigned stored_ = 0;  // that barrier; 0: nothing is being stored
};

}  // namespace tw_kernel
