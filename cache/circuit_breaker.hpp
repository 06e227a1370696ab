#pragma once

#include <chrono>
#include <mutex>
#include <random>

namespace tilewright::cache {

/// Keeps a server that fails from costing time again and again. After a few failures in a row it is
/// not asked for a while; then one thread tries it, and each failure of such a try doubles the
/// while. Safe to use from many threads.
class CircuitBreaker {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    int failures = 3;  ///< in a row, before the first pause
    std::chrono::milliseconds first_pause = std::chrono::seconds(10);
    std::chrono::milliseconds longest_pause = std::chrono::minutes(5);
  };

  CircuitBreaker() : CircuitBreaker(Limits{}) {}
  explicit CircuitBreaker(const Limits& limits);

  /// Whether the server may be asked now. After a `true` one of the functions below must follow.
  bool allows(Clock::time_point now);
  void succeeded();
  void failed(Clock::time_point now);

 private:
  const Limits limits_;
  std::mutex mutex_;
  std::minstd_rand random_;
  int failures_ = 0;                 // in a row
  std::chrono::milliseconds pause_;  // of the next time that it opens
  Clock::time_point resume_{};       // while failures_ has reached its limit
  bool is_tried_ = false;            // by one thread, after a pause
};

}  // namespace tilewright::cache
