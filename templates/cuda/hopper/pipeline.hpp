// How tiles travel from the copy engine to the products, through two rings of kStages places, one
// of K and one of V, and one of kQStages places for Q. Every place has a barrier for "full", which
// the copies complete, and one for "empty", at which every consuming warp arrives when it is done
// with it.
//
// Needs: layout.hpp, work.hpp.

namespace tw_kernel {

// In shared memory behind the tiles.
struct Control {
  unsigned long long q_full[kQStages], q_empty[kQStages];
  unsigned long long k_full[kStages], k_empty[kStages];
  unsigned long long v_full[kStages], v_empty[kStages];
  KvTile kv_tile[kStages];  // whose K is in the stage
  // One more than places of Q: the producer may announce a q tile as soon as there is an empty
  // place, while the consumers still store the one whose place it was.
  Work work[kQStages + 1];
};
static_assert(kControlOffset + sizeof(Control) <= {{ shared_bytes }},
              "a launch has the tactic's shared_bytes");

struct Shared {
  unsigned tiles;  // address of all tiles, a multiple of 1024
  Control* control;

  __forceinline__ unsigned q(int stage, int consumer) const {
    return tiles + kQOffset + (stage * kConsumers + consumer) * kQGroupBytes;
  }
  __forceinline__ unsigned k(int stage) const { return tiles + kKOffset + stage * kKBytes; }
  __forceinline__ unsigned v(int stage) const { return tiles + kVOffset + stage * kVBytes; }
  // q_stage: where the q tile's Q was.
  __forceinline__ unsigned out(int q_stage, int consumer) const {
    return kOutOverQ ? q(q_stage, consumer) : tiles + kOutOffset + consumer * kOutGroupBytes;
  }
};

// A place in a ring and the parity of the phase in which it becomes full this time round.
template <int kPlaces>
struct PlaceInRing {
  int stage = 0;
  unsigned parity = 0;

  __forceinline__ void advance() {
    if (++stage < kPlaces) return;
    stage = 0;
    parity ^= 1;
  }
};
using RingPlace = PlaceInRing<kStages>;

// A q tile's place among those of Q, and its announcement.
struct QPlace {
  PlaceInRing<kQStages> q;
  PlaceInRing<kQStages + 1> work;

  __forceinline__ void advance() {
    q.advance();
    work.advance();
  }
};

TW_INLINE void make_pipeline(const Shared& shared) {
  constexpr int kWarpsThatRead = kConsumers * 4;
  Control& control = *shared.control;
  for (int i = 0; i < kQStages; ++i) {
    init_barrier(shared_address(&control.q_full[i]), 1);
    init_barrier(shared_address(&control.q_empty[i]), kWarpsThatRead);
  }
  for (int i = 0; i < kStages; ++i) {
    init_barrier(shared_address(&control.k_full[i]), 1);
    init_barrier(shared_address(&control.k_empty[i]), kWarpsThatRead);
    init_barrier(shared_address(&control.v_full[i]), 1);
    init_barrier(shared_address(&control.v_empty[i]), kWarpsThatRead);
  }
  publish_barriers();
}

// The calling warp is done with a place: all of its lanes have read what they wanted.
TW_INLINE void release(unsigned long long& empty) {
  __syncwarp();
  if (lane() == 0) arrive(shared_address(&empty));
}

}  // namespace tw_kernel
