#include "tests/emulated_gpu/block.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>

#include <ucontext.h>

namespace emulated {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

struct Fiber {
  ucontext_t context;
  std::unique_ptr<unsigned char[]> stack;
  Thread thread;
  bool has_ended = false;
  const char* waits_for = nullptr;
};

// Of this thread of the host: the block that it runs.
struct Running {
  ucontext_t scheduler;
  Fiber* fiber = nullptr;
  const std::function<void()>* body = nullptr;
  bool has_progress = false;
  std::string failure;
  std::mt19937_64 random;  // of the order in which things happen
};

thread_local Running running;

void run_fiber() {
  Fiber& fiber = *running.fiber;
  (*running.body)();
  if (!fiber.thread.stores.empty()) running.failure = "a store of a box was not committed";
  fiber.has_ended = true;
  running.has_progress = true;
  swapcontext(&fiber.context, &running.scheduler);
}

void start(Fiber& fiber) {
  fiber.stack.reset(new unsigned char[kStackBytes]);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, &run_fiber, 0);
}

Thread& current() {
  return running.fiber->thread;
}

void leave() {
  swapcontext(&running.fiber->context, &running.scheduler);
}

void pause(const char* what) {
  running.fiber->waits_for = what;
  leave();
}

void progress() {
  running.has_progress = true;
}

void dawdle() {
  for (auto rounds = running.random() % 8; rounds > 0; --rounds) {
    progress();
    leave();
  }
}

void fail(const char* why) {
  running.failure = why;
  while (true) leave();  // never resumed
}

// The copy engine is eager, or waits until no thread can go on; every other block begins with the
// one or the other, and it changes now and then, as a block may do the work of all. Either way it
// takes what it was asked for in a random order.
void copy_some(Block& block) {
  std::mt19937_64& random = running.random;
  if (random() % 64 == 0) block.has_eager_copies = !block.has_eager_copies;
  const bool is_eager = block.has_eager_copies;
  if (block.in_flight.empty() || (!is_eager && running.has_progress && random() % 32 != 0)) return;
  std::shuffle(block.in_flight.begin(), block.in_flight.end(), random);
  const std::size_t most = is_eager ? block.in_flight.size() : 1;
  for (std::size_t i = 1 + random() % most; i > 0; --i) {
    const Action copy = std::move(block.in_flight.back());
    block.in_flight.pop_back();
    copy();
  }
  running.has_progress = true;
}

std::string describe_waits(const std::vector<Fiber>& fibers) {
  std::map<std::string, int> waits;
  for (const Fiber& fiber : fibers) {
    if (!fiber.has_ended) ++waits[fiber.waits_for];
  }
  std::string text = "it stands still:";
  for (const auto& [what, count] : waits) {
    text += " " + std::to_string(count) + " threads wait for " + what + ";";
  }
  return text;
}

std::uint64_t bit_of(std::size_t warp) {
  return std::uint64_t{1} << warp % 64;
}

// Of a warpgroup whose warps did not issue the same products.
bool has_part_of_product(const std::vector<Product>& products) {
  return std::any_of(products.begin(), products.end(),
                     [](const Product& product) { return product.threads != kWarpgroup; });
}

// A block's shared memory is another's as soon as its threads have ended.
bool ended_too_soon(const Fiber& fiber) {
  return fiber.has_ended && (!fiber.thread.stores.empty() || fiber.thread.stores_in_flight > 0);
}

}  // namespace

std::string run_block(unsigned index, unsigned grid, unsigned threads, std::uint64_t seed,
                      const std::function<void()>& body) {
  running.random.seed(seed * 1'000'003 + index);
  Block block{.index = index,
              .grid = grid,
              .threads = threads,
              .barriers = {},
              .products = {},
              .in_flight = {},
              .has_eager_copies = index % 2 == 0};
  std::vector<Warp> warps((threads + kLanes - 1) / kLanes);
  std::vector<Fiber> fibers(threads);
  std::vector<unsigned> order(threads);
  running.body = &body;
  running.failure.clear();
  running.has_progress = true;
  for (unsigned i = 0; i < threads; ++i) {
    order[i] = i;
    fibers[i].thread.index = i;
    fibers[i].thread.block = &block;
    fibers[i].thread.warp = &warps[i / kLanes];
    start(fibers[i]);
  }
  std::size_t slow_warp = warps.size();
  while (!order.empty() || !block.in_flight.empty()) {
    // For a while one of the warps, or none, is far slower than the others.
    if (running.random() % 64 == 0) slow_warp = running.random() % (2 * warps.size());
    // Where the last round brought nothing, all take part in this one.
    const bool slow_rests =
        running.has_progress && slow_warp < warps.size() && running.random() % 8 != 0;
    const bool all_run = !slow_rests && (!running.has_progress || running.random() % 2 == 0);
    const std::uint64_t resting =  // warps
        all_run ? 0 : (running.random() & running.random()) | (slow_rests ? bit_of(slow_warp) : 0);
    std::shuffle(order.begin(), order.end(), running.random);
    running.has_progress = false;
    for (const unsigned i : order) {
      if (resting >> i / kLanes % 64 & 1) continue;
      running.fiber = &fibers[i];
      swapcontext(&running.scheduler, &fibers[i].context);
      if (!running.failure.empty()) break;
    }
    if (std::any_of(fibers.begin(), fibers.end(), ended_too_soon)) {
      running.failure = "a thread has ended whose stores the copy engine did not read";
    }
    if (running.failure.empty()) {
      std::erase_if(order, [&](unsigned i) { return fibers[i].has_ended; });
      if (!running.has_progress && all_run && block.in_flight.empty()) {
        running.failure = describe_waits(fibers);
      }
      copy_some(block);
    }
    if (!running.failure.empty()) return "block " + std::to_string(index) + ": " + running.failure;
  }
  if (std::any_of(std::begin(block.products), std::end(block.products), has_part_of_product)) {
    return "block " + std::to_string(index) +
           ": a product was issued by some warps of a warpgroup and not by all";
  }
  return {};
}

const Core& core() {
  static const Core functions = {&current, &pause, &progress, &dawdle, &fail};
  return functions;
}

}  // namespace emulated
