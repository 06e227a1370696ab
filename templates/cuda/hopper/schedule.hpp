#pragma once

#include "kernel/configuration.hpp"
#include "kernel/find_place.hpp"
#include "kernel/sequence.hpp"

// Which q tiles a block of threads computes. Their numbers rise with falling cost (place.hpp). A block
// begins with the tile of its own number; those behind are dealt out by a counter in global memory, as
// blocks become free: rows differ in cost and multiprocessors in speed, and dealing all of them out
// beforehand took up to 13 % longer (decision 25).
//
// Launches that run at the same time must not share a counter. The runtime numbers launches, and
// launch n uses counter n % kLaunchCounters. A launch that finds it taken by another is refused and
// deals its tiles out beforehand, all of its blocks alike: that it was refused is never forgotten. So
// every owner hears from all of its blocks, and leaves the counter free and cleared for whoever comes
// next, a graph's replay of the same launch among them. There is a bit for each of 32 classes of launches,
// so one that was never refused may find itself in a class that was.

namespace tw_kernel {

struct LaunchCounter {
  unsigned long long owner;  // the launch that uses it, 0: none; in the upper half the classes refused
  unsigned dealt;            // tiles that were dealt out
  unsigned ended;            // blocks of the owner that get no more
};
__device__ LaunchCounter launch_counters[kLaunchCounters];

// The counter, for one thread of each block.
class TileCounter {
 public:
  // launch: its number, not 0.
  __forceinline__ explicit TileCounter(unsigned launch) : launch_(launch) {}

  // Whether the launch has the counter.
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

  __forceinline__ unsigned deal() const { return atomicAdd(&counter().dealt, 1u); }

  // The block gets no more. The last one makes the counter free.
  __forceinline__ void leave() const {
    if (atomicAdd(&counter().ended, 1u) + 1 < gridDim.x) return;
    counter().dealt = 0;
    counter().ended = 0;
    __threadfence();  // whoever finds it free finds it cleared
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
    const TileCounter dealer(arguments_.launch);
    if (round_++ == 0) is_dealt_ = count() > gridDim.x && dealer.join();
    number_ = is_dealt_ ? gridDim.x + dealer.deal() : own_number();
    if (is_dealt_ && done()) dealer.leave();
  }

 private:
  // Every other round backwards: whoever got a longer tile gets a shorter one next.
  __forceinline__ unsigned own_number() const {
    return round_ * gridDim.x + (round_ % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x);
  }

  // Few registers: what the arguments say is found again.
  __forceinline__ unsigned count() const {
    return count_q_tiles(arguments_, call_);
  }

  const ForwardArguments& arguments_;
  const SnippetArguments& call_;
  unsigned number_;
  unsigned round_ = 0;
  bool is_dealt_ = false;  // found out behind the first tile
};

}  // namespace tw_kernel
