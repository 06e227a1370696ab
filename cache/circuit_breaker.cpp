#include "cache/circuit_breaker.hpp"

#include <algorithm>

namespace tilewright::cache {

CircuitBreaker::CircuitBreaker(const Limits& limits)
    : limits_(limits), random_(std::random_device{}()), pause_(limits.first_pause) {}

bool CircuitBreaker::allows(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (failures_ < limits_.failures) return true;
  if (now < resume_ || is_tried_) return false;
  is_tried_ = true;
  return true;
}

void CircuitBreaker::succeeded() {
  const std::lock_guard lock(mutex_);
  failures_ = 0;
  is_tried_ = false;
  resume_ = {};
  pause_ = limits_.first_pause;
}

// Up to a quarter longer by chance: processes that met the same failure do not come back at once.
void CircuitBreaker::failed(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  failures_ = std::min(failures_ + 1, limits_.failures);
  // Of threads that asked side by side only the first failure counts as the try after a pause.
  if (failures_ < limits_.failures || (now < resume_ && !is_tried_)) return;
  is_tried_ = false;
  std::uniform_int_distribution<std::chrono::milliseconds::rep> extra(0, pause_.count() / 4);
  resume_ = now + pause_ + std::chrono::milliseconds(extra(random_));
  pause_ = std::min(2 * pause_, limits_.longest_pause);
}

}  // namespace tilewright::cache
