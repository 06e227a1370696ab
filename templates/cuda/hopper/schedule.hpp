#pragma once

#include "kernel/configuration.hpp"
#include "kernel/find_q_tile.hpp"
#include "kernel/item_parts.hpp"
#include "kernel/sequence.hpp"

// Dynamic tile scheduling: which q tiles a block of threads computes. Tiles are numbered by falling cost
// (uniform_q_tiles.hpp). A block begins with the tile whose number is the block's and draws every further one from a
// counter in global memory when it is free: rows differ in cost and SMs in speed, and a static schedule took
// up to 13 % longer (decision 25).
//
// Launches that run at the same time must not share a counter. The runtime numbers launches, and launch n
// uses counter n % kLaunchCounters. If another launch owns the counter, this one falls back to a static
// schedule in all of its blocks, and the counter keeps a bit for it. So every owner hears from all of its
// blocks, and leaves the counter free and cleared for its next owner, which may be a graph's replay of the
// same launch. There is a bit for each of 32 classes of launches: a launch may find that another of its
// class was refused, and falls back too.

namespace tw_kernel {

struct LaunchCounter {
  unsigned long long owner;  // the launch that uses it, 0: none; in the upper half the classes refused
  unsigned drawn;            // tiles that were drawn
  unsigned ended;            // blocks of the owner that get no more
};
__device__ LaunchCounter launch_counters[kLaunchCounters];

// The counter, for one thread of each block.
class TileCounter {
 public:
  // launch: its number, not 0.
  __forceinline__ explicit TileCounter(unsigned launch) : launch_(launch) {}

  // Whether the launch owns the counter.
  __forceinline__ bool join() const {
    const unsigned mine = 1u << launch_ / kLaunchCounters % 32;
    unsigned long long seen = 0;
    while (true) {
      const auto owner = static_cast<unsigned>(seen);
      const auto refused = static_cast<unsigned>(seen >> 32);
      if (owner == launch_ || (refused & mine) != 0) break;
      const unsigned long long wanted =
          owner == 0 ? pair(refused, launch_) : pair(refused | mine, owner);
      const unsigned long long before = atomicCAS(&counter().owner, seen, wanted);
      seen = before == seen ? wanted : before;
    }
    __threadfence();  // what the owner before left is there
    return static_cast<unsigned>(seen) == launch_;
  }

  __forceinline__ unsigned draw() const { return atomicAdd(&counter().drawn, 1u); }

  // The block gets no more. The last one makes the counter free.
  __forceinline__ void leave() const {
    if (atomicAdd(&counter().ended, 1u) + 1 < gridDim.x) return;
    counter().drawn = 0;
    counter().ended = 0;
    __threadfence();  // the next owner finds it cleared
    atomicAnd(&counter().owner, pair(~0u, 0));
  }

 private:
  static __forceinline__ unsigned long long pair(unsigned refused, unsigned owner) {
    return static_cast<unsigned long long>(refused) << 32 | owner;
  }

  __forceinline__ LaunchCounter& counter() const {
    return launch_counters[launch_ % kLaunchCounters];
  }

  unsigned launch_;
};

class Schedule {
 public:
  __forceinline__ Schedule(const ForwardArguments& arguments, const SnippetArguments& call)
      : arguments_(arguments), call_(call), number_(blockIdx.x) {}

  __forceinline__ bool done() const { return number_ >= count(); }
  __forceinline__ unsigned number() const { return number_; }

  __forceinline__ void advance() {
    const TileCounter counter(arguments_.launch);
    if (round_++ == 0) is_dynamic_ = count() > gridDim.x && counter.join();
    number_ = is_dynamic_ ? gridDim.x + counter.draw() : own_number();
    if (is_dynamic_ && done()) counter.leave();
  }

 private:
  // Every other round backwards: a block that had a longer tile has a shorter one next.
  __forceinline__ unsigned own_number() const {
    return round_ * gridDim.x + (round_ % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x);
  }

  // Few registers: what the arguments say is found again.
  __forceinline__ unsigned count() const {
    return count_items(arguments_, count_q_tiles(arguments_, call_));
  }

  const ForwardArguments& arguments_;
  const SnippetArguments& call_;
  unsigned number_;
  unsigned round_ = 0;
  bool is_dynamic_ = false;  // found out after the first tile
};

}  // namespace tw_kernel
