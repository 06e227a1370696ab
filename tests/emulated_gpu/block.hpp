#pragma once

// A block of CUDA threads on one thread of the host: each of its threads is a fiber, which runs
// until it has to wait for others. In which order they run is random, from a seed; so a missing
// barrier, or a wait for the wrong one, gives wrong results or stands still, and standing still is
// noticed.
//
// Copies of the copy engine happen at a random time after they were asked for, those of cp.async as
// late as their thread allows, and so do matrix products.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace emulated {

constexpr unsigned kLanes = 32;
constexpr unsigned kWarpgroup = 128;

/// What the lanes of a warp tell each other. One exchange follows the other, and a lane may be one
/// ahead of the slowest, so there is room for two.
struct Warp {
  static constexpr std::size_t kSlotBytes = 64;
  alignas(16) unsigned char slots[2][kLanes][kSlotBytes];
  unsigned arrived = 0;
  unsigned exchanges = 0;  // that are complete
};

/// bar.sync and bar.arrive.
struct NamedBarrier {
  unsigned arrived = 0;
  unsigned phase = 0;
  bool any = false;         // of those who arrived in this phase
  bool any_before = false;  // in the one before
};

using Action = std::function<void()>;

struct Block;

struct Thread {
  unsigned index = 0;
  Block* block = nullptr;
  Warp* warp = nullptr;
  std::vector<std::vector<Action>> copy_groups;  // of cp.async, committed, oldest first
  std::vector<Action> copies;                    // not yet committed
  std::vector<Action> products;                  // of wgmma, a commit each, oldest first
  std::size_t products_issued = 0;
  std::vector<Action> stores;      // of the copy engine, not yet committed
  int stores_in_flight = 0;        // that have not read shared memory
  int stores_unwritten = 0;        // or have not written
  std::vector<unsigned> unfenced;  // shared words that it wrote, see Block::unfenced_words
};

/// A matrix product of a warpgroup, which its four warps issue together.
struct Product {
  unsigned long long operands[2] = {};  // descriptors; 0 where there is none
  unsigned threads = 0;                 // that issued it
};

struct Block {
  unsigned index = 0;
  unsigned grid = 0;
  unsigned threads = 0;
  NamedBarrier barriers[16];
  std::vector<Product> products[8];  // of each warpgroup, in the order in which they are issued
  std::vector<Action> in_flight;     // copies of the copy engine
  bool has_eager_copies = true;
  // Whether the copy engine may not see yet what a thread wrote to a word (4 bytes) of shared
  // memory: the thread has not fenced it.
  std::vector<bool> unfenced_words;
  bool has_unpublished_barriers = false;
};

/// What the emulator gives a kernel's library.
struct Core {
  Thread& (*current)();
  /// Lets others run. Called again and again until the caller has what it waits for.
  /// @param what for the report, where a block stands still
  void (*pause)(const char* what);
  /// Something happened that others may wait for.
  void (*progress)();
  /// Lets others run for a while, as the hardware may.
  void (*dawdle)();
  /// Ends the launch with an error.
  void (*fail)(const char* why);
};

/// Runs one block of a kernel: `body` once in each thread.
/// @return empty, or why the block did not end
std::string run_block(unsigned index, unsigned grid, unsigned threads, std::uint64_t seed,
                      const std::function<void()>& body);

const Core& core();

}  // namespace emulated
