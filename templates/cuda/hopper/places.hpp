#pragma once

#include "cuda/hopper/layout.hpp"
#include "cuda/hopper/threads.hpp"
#include "cuda/tile/panel.hpp"
#include "kernel/configuration.hpp"

// Places of tiles in shared memory, and in the rings that they form.

namespace tw_kernel {

struct Control;  // barriers and announcements: pipeline.hpp, resident/pipeline.hpp

struct Shared {
  unsigned tiles;  // address of all tiles, a multiple of 1024
  Control* control;

  __forceinline__ unsigned q(int stage, int consumer) const {
    return tiles + kQOffset + (stage * kConsumers + consumer) * kQGroupBytes;
  }
  __forceinline__ unsigned k(int stage) const { return tiles + kKOffset + stage * kKBytes; }
  __forceinline__ unsigned v(int stage) const { return tiles + kVOffset + stage * kVBytes; }
  __forceinline__ unsigned brought_k(int stage) const {
    return tiles + kBroughtKOffset + stage * kBroughtKBytes;
  }
  __forceinline__ unsigned brought_v(int stage) const {
    return tiles + kBroughtVOffset + stage * kBroughtVBytes;
  }
  // Of the calling warp's values by the difference of indices.
  __forceinline__ unsigned differences() const {
    const unsigned warp = consumer_thread() / 32;
    if (!kDifferencesLieInOut) return tiles + kDifferencesOffset + warp * (kDifferenceBytes / (kConsumers * 4));
    return tiles + kOutOffset + warp / 4 * kOutGroupBytes + warp % 4 * 16 * kPanelRowBytes;
  }
  // q_stage: where the q tile's Q was.
  __forceinline__ unsigned out(int q_stage, int consumer) const {
    return kOutOverQ ? q(q_stage, consumer) : tiles + kOutOffset + consumer * kOutGroupBytes;
  }
};

// Where the copy engine's tiles go: a place of a ring, with its barriers.
struct BroughtPlace {
  unsigned tile;
  unsigned long long& full;
  unsigned long long& empty;
};

// A place in a ring, by how many were before it, and the parity of the phase in which it becomes full
// this time round.
template <int kPlaces>
struct PlaceInRing {
  unsigned count = 0;

  __forceinline__ int stage() const { return static_cast<int>(count % kPlaces); }
  __forceinline__ unsigned parity() const { return count / kPlaces % 2; }
  __forceinline__ void advance() { ++count; }
  __forceinline__ PlaceInRing next() const { return {count + 1}; }
};

// The same in the rings of K and V for the consumers, where what depends on it is waited for: a pair is
// ready sooner than what follows from a count.
struct KvPlace {
  int stage = 0;
  unsigned parity = 0;

  __forceinline__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

}  // namespace tw_kernel
