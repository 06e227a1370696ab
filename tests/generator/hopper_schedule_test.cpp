// How the Hopper kernel draws q tiles, run on the host: launches one after the other, at once,
// and at once with one counter.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/emulated_gpu/atomics.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/test_seed.hpp"

#define __forceinline__ inline
#define TW_INLINE inline
#define __device__

namespace {

thread_local struct { unsigned x; } blockIdx, gridDim;

struct ForwardArguments {
  int q_tiles;
  unsigned launch;
};
struct SnippetArguments {
  int batch;
  int num_q_heads;
};

unsigned count_q_tiles(const ForwardArguments& arguments, const SnippetArguments& call) {
  return static_cast<unsigned>(arguments.q_tiles * call.batch * call.num_q_heads);
}

constexpr unsigned kLaunchCounters = 2;
#include "cuda/hopper/schedule.hpp"

using tw_kernel::Schedule;

// The blocks of threads of one launch. Each takes its tiles in step() or run().
class Launch {
 public:
  Launch(unsigned number, int q_tiles, unsigned blocks)
      : arguments_{q_tiles, number}, grid_(blocks), times_(static_cast<std::size_t>(q_tiles) * 6) {
    for (unsigned i = 0; i < blocks; ++i) waiting_.push_back(i);
  }

  bool has_ended() const { return waiting_.empty() && running_.empty(); }

  // One block goes on by one tile: a random one of those that have begun, or the next one begins.
  void step(std::mt19937_64& random) {
    const bool begins = !waiting_.empty() && (running_.empty() || random() % 4 == 0);
    if (begins) {
      Block block{waiting_.back(), nullptr};
      waiting_.pop_back();
      enter(block.index);
      block.schedule = std::make_unique<Schedule>(arguments_, call_);
      running_.push_back(std::move(block));
    }
    const std::size_t chosen = random() % running_.size();
    Block& block = running_[chosen];
    enter(block.index);
    if (!block.schedule->done()) {
      compute(block.schedule->number());
      block.schedule->advance();
    }
    if (block.schedule->done())
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(chosen));
  }

  // One block from its beginning to its end, on a thread of its own.
  void run(unsigned index) {
    enter(index);
    for (Schedule schedule(arguments_, call_); !schedule.done(); schedule.advance()) {
      compute(schedule.number());
      std::this_thread::yield();
    }
  }

  bool computed_each() const { return *std::min_element(times_.begin(), times_.end()) >= 1; }
  bool computed_each_once() const { return computed_each() && most() == 1; }
  unsigned blocks() const { return grid_; }

 private:
  struct Block {
    unsigned index;
    std::unique_ptr<Schedule> schedule;
  };

  int most() const { return *std::max_element(times_.begin(), times_.end()); }
  void enter(unsigned index) const {
    blockIdx.x = index;
    gridDim.x = grid_;
  }
  void compute(unsigned number) { __atomic_fetch_add(&times_.at(number), 1, __ATOMIC_RELAXED); }

  ForwardArguments arguments_;
  SnippetArguments call_{2, 3};
  unsigned grid_;
  std::vector<int> times_;
  std::vector<unsigned> waiting_;  // blocks that have not begun
  std::vector<Block> running_;
};

void forget_refusals() {
  for (tw_kernel::LaunchCounter& counter : tw_kernel::launch_counters) counter = {};
}

bool counters_are_free() {
  return std::all_of(std::begin(tw_kernel::launch_counters), std::end(tw_kernel::launch_counters),
                     [](const tw_kernel::LaunchCounter& counter) {
                       return static_cast<unsigned>(counter.owner) == 0 && counter.drawn == 0 &&
                              counter.ended == 0;
                     });
}

void finish(std::vector<Launch>& launches, std::mt19937_64& random) {
  while (!std::all_of(launches.begin(), launches.end(),
                      [](const Launch& l) { return l.has_ended(); })) {
    Launch& launch = launches[random() % launches.size()];
    if (!launch.has_ended()) launch.step(random);
  }
}

}  // namespace

TEST_CASE(
    "Hopper schedule: every q tile once, whichever block is ready first, and again in a replay") {
  std::mt19937_64 random(test_seed());
  for (const int q_tiles : {1, 5, 64}) {
    for (const unsigned blocks : {1u, 7u, 132u, 500u}) {
      for (const unsigned number : {1u, 2u, 2u, ~0u, 1u}) {
        std::vector<Launch> launches;
        launches.emplace_back(number, q_tiles, blocks);
        finish(launches, random);
        INFO(q_tiles << " q tiles, " << blocks << " blocks of threads, launch " << number);
        REQUIRE(launches[0].computed_each_once());
        REQUIRE(counters_are_free());
      }
    }
  }
}

TEST_CASE("Hopper schedule: a slow block of threads takes few tiles") {
  const ForwardArguments arguments{100, 1};
  const SnippetArguments call{1, 1};
  gridDim.x = 2;
  blockIdx.x = 1;
  Schedule slow(arguments, call);
  slow.advance();
  blockIdx.x = 0;
  int tiles = 0;
  for (Schedule fast(arguments, call); !fast.done(); fast.advance()) ++tiles;
  CHECK(tiles == 98);
  blockIdx.x = 1;
  slow.advance();
  CHECK(slow.done());
  CHECK(counters_are_free());
}

TEST_CASE("Hopper schedule: two launches at once with one counter compute every q tile once each") {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 300; ++round) {
    std::vector<Launch> launches;
    launches.emplace_back(1u + 4 * static_cast<unsigned>(round),
                          1 + static_cast<int>(random() % 20), 1 + random() % 16);
    launches.emplace_back(3u + 4 * static_cast<unsigned>(round),
                          1 + static_cast<int>(random() % 20), 1 + random() % 16);
    finish(launches, random);
    REQUIRE(launches[0].computed_each_once());
    REQUIRE(launches[1].computed_each_once());
    REQUIRE(counters_are_free());
  }
}

TEST_CASE(
    "Hopper schedule: four launches at once with one counter, and a replay of each, are whole") {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 2000; ++round) {
    forget_refusals();
    std::vector<std::pair<int, unsigned>> sizes;
    std::vector<Launch> launches;
    for (unsigned i = 0; i < 4; ++i) {
      sizes.emplace_back(1 + static_cast<int>(random() % 20), 1 + random() % 16);
      launches.emplace_back(1 + 2 * i, sizes[i].first, sizes[i].second);
    }
    finish(launches, random);
    for (const Launch& launch : launches) REQUIRE(launch.computed_each_once());
    REQUIRE(counters_are_free());
    for (unsigned i = 0; i < 4; ++i) {
      std::vector<Launch> replay;
      replay.emplace_back(1 + 2 * i, sizes[i].first, sizes[i].second);
      finish(replay, random);
      REQUIRE(replay[0].computed_each_once());
      REQUIRE(counters_are_free());
    }
  }
  forget_refusals();
}

TEST_CASE("Hopper schedule: two launches on threads of their own compute every q tile once each") {
  for (unsigned round = 0; round < 50; ++round) {
    Launch first(1 + 4 * round, 20, 5), second(3 + 4 * round, 20, 5);
    std::vector<std::jthread> threads;
    for (Launch* launch : {&first, &second}) {
      for (unsigned i = 0; i < launch->blocks(); ++i)
        threads.emplace_back([launch, i] { launch->run(i); });
    }
    threads.clear();
    REQUIRE(first.computed_each_once());
    REQUIRE(second.computed_each_once());
    REQUIRE(counters_are_free());
  }
}
