#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../../runtime/api/context_parallel.hpp"
#include "../../runtime/api/thread_pool.hpp"
#include "loopback.hpp"

// Runs a body on each rank of a group, a thread each.

namespace tilewright::test {

/// What one rank has.
struct Rank {
  int rank = 0;
  std::shared_ptr<Loopback> loopback;
  ThreadPool threads{1};

  ContextParallel context(const Spec& spec) {
    return {spec, loopback, {.device = Device::cpu(), .threads = &threads}};
  }
};

/// @return the text of the error that ended each rank; empty where none did
inline std::vector<std::string> run_ranks(
    int size, const std::function<void(Rank&)>& body,
    std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  const auto group = std::make_shared<LoopbackGroup>(size, timeout);
  std::vector<std::string> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Rank own{.rank = rank, .loopback = std::make_shared<Loopback>(group, rank)};
        body(own);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace tilewright::test
