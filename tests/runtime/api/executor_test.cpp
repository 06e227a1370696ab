#include "runtime/api/executor.hpp"

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "runtime/api/attention.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Starts threads for each loop, as a test need not be fast. Items go to the workers in turn.
class OwnThreads : public Executor {
 public:
  explicit OwnThreads(int size) : size_(size) {}
  int size() const override { return size_; }

  int loops = 0;

 private:
  void run_loop(std::int64_t items, LoopBody body) override {
    ++loops;
    std::vector<std::thread> threads;
    for (int worker = 0; worker < size_; ++worker) {
      threads.emplace_back([=, this] {
        for (std::int64_t item = worker; item < items; item += size_) body(item, worker);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  int size_;
};

/// Runs all items on the calling thread, in the way that a test gives.
class Faulty : public Executor {
 public:
  using Call = std::function<void(std::int64_t item, int worker)>;
  explicit Faulty(std::function<void(std::int64_t items, const Call& body)> run)
      : run_(std::move(run)) {}
  int size() const override { return 2; }

 private:
  void run_loop(std::int64_t items, LoopBody body) override { run_(items, body); }
  std::function<void(std::int64_t items, const Call& body)> run_;
};

std::vector<float> forward_with(Executor& threads) {
  const Attention attention(
      {.dtype = f32, .head_dim = 32, .mask_mod = "q_idx >= kv_idx", .block = {16, 16}},
      {.device = Device::cpu(), .threads = &threads});
  std::vector<float> q(3 * 70 * 32), out(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i % 37) / 16 - 1;
  const auto view = [](std::vector<float>& x) {
    return TensorView::contiguous(x.data(), f32, {1, 3, 70, 32});
  };
  const BlockMask mask =
      attention.block_mask({.num_q_heads = 3, .num_kv_heads = 3, .q_len = 70, .kv_len = 70});
  attention.forward({.q = view(q), .k = view(q), .v = view(q), .out = view(out)}, mask);
  return out;
}

}  // namespace

TEST_CASE("executor: a program's threads run every item once") {
  for (const int size : {0, 1, 2, 5}) {
    OwnThreads threads(size);
    for (const std::int64_t items : {-1, 0, 1, 2, 7, 100}) {
      std::vector<std::atomic<int>> runs(
          static_cast<std::size_t>(std::max<std::int64_t>(items, 0)));
      std::atomic<int> greatest = 0;
      threads.parallel_for(items, [&](std::int64_t item, int worker) {
        ++runs[static_cast<std::size_t>(item)];
        if (worker > greatest) greatest = worker;
      });
      CHECK(std::all_of(runs.begin(), runs.end(), [](const auto& n) { return n == 1; }));
      CHECK(greatest < std::max(1, size));
    }
    CHECK(threads.loops == (size < 2 ? 0 : 3));
  }
}

TEST_CASE("executor: an Attention computes on the program's threads, with the same result") {
  OwnThreads threads(3);
  ThreadPool pool(1);
  CHECK(forward_with(threads) == forward_with(pool));
  CHECK(threads.loops > 0);
}

TEST_CASE("executor: an exception of a body is thrown when the loop has ended") {
  OwnThreads threads(3);
  std::atomic<int> ended = 0;
  const auto loop = [&] {
    threads.parallel_for(30, [&](std::int64_t item, int) {
      if (item == 4) throw std::runtime_error("item 4");
      ++ended;
    });
  };
  CHECK_THROWS_WITH(loop(), "item 4");
  CHECK(ended <= 29);
}

TEST_CASE("executor: what run_loop() throws is thrown") {
  Faulty threads([](std::int64_t, const Faulty::Call&) { throw std::runtime_error("no pool"); });
  CHECK_THROWS_WITH(threads.parallel_for(4, [](std::int64_t, int) {}), "no pool");
}

TEST_CASE("executor: one that does other than asked is refused") {
  const auto run = [](std::function<void(std::int64_t, const Faulty::Call&)> how) {
    Faulty threads(std::move(how));
    threads.parallel_for(4, [](std::int64_t, int) {});
  };
  CHECK_THROWS_WITH(run([](std::int64_t, const auto& body) { body(0, 0); }),
                    ContainsSubstring("the executor ran 1 of a loop's 4 items") &&
                        ContainsSubstring("once for each item"));
  CHECK_THROWS_WITH(run([](std::int64_t items, const auto& body) {
                      for (std::int64_t i = 0; i <= items; ++i) body(i % items, 0);
                    }),
                    ContainsSubstring("the executor ran 5 of a loop's 4 items"));
  CHECK_THROWS_WITH(run([](std::int64_t items, const auto& body) {
                      for (std::int64_t i = 0; i < items; ++i) body(i, 2);
                    }),
                    ContainsSubstring("the executor ran item 0 of 4 as worker 2 of 2"));
  CHECK_THROWS_WITH(run([](std::int64_t items, const auto& body) {
                      for (std::int64_t i = 1; i <= items; ++i) body(i, 1);
                    }),
                    ContainsSubstring("the executor ran item 4 of 4"));
  CHECK_NOTHROW(run([](std::int64_t items, const auto& body) {
    for (std::int64_t i = items - 1; i >= 0; --i) body(i, 1);
  }));
}

TEST_CASE("executor: a loop inside a body runs on its thread alone") {
  OwnThreads threads(2);
  ThreadPool pool(2);
  std::atomic<int> same = 0;
  const auto outer_then_inner = [&](Executor& outer, Executor& inner) {
    outer.parallel_for(2, [&](std::int64_t, int) {
      const auto thread = std::this_thread::get_id();
      inner.parallel_for(4, [&](std::int64_t, int worker) {
        if (std::this_thread::get_id() == thread && worker == 0) ++same;
      });
    });
  };
  outer_then_inner(threads, threads);
  outer_then_inner(threads, pool);
  outer_then_inner(pool, threads);
  CHECK(same == 24);
}

TEST_CASE("executor: bodies compute in the default floating-point environment") {
  class Upward : public OwnThreads {
   public:
    Upward() : OwnThreads(2) {}

   private:
    void run_loop(std::int64_t items, LoopBody body) override {
      std::thread thread([&] {
        std::fesetround(FE_UPWARD);
        for (std::int64_t item = 0; item < items; ++item) body(item, 0);
        kept = std::fegetround();
      });
      thread.join();
    }

   public:
    int kept = 0;
  } threads;
  std::vector<int> rounding(8, -1);
  threads.parallel_for(8, [&](std::int64_t item, int) {
    rounding[static_cast<std::size_t>(item)] = std::fegetround();
  });
  CHECK(rounding == std::vector<int>(8, FE_TONEAREST));
  CHECK(threads.kept == FE_UPWARD);
}
