#include "cache/single_flight.hpp"

#include "base/activity.hpp"
#include "base/error.hpp"

namespace tilewright::cache {

SingleFlight::Outcome SingleFlight::run(const Key& key, const Work& work) {
  auto flight = std::make_shared<Flight>();
  {
    std::unique_lock lock(mutex_);
    const auto [found, is_first] = flights_.try_emplace(key, flight);
    if (!is_first) {
      flight = found->second;
      lock.unlock();
      return {wait_for(*flight), false};
    }
    flight->leader = std::this_thread::get_id();
    flight->result = flight->promise.get_future().share();
  }
  try {
    flight->promise.set_value(work());
  } catch (...) {
    flight->promise.set_exception(std::current_exception());
  }
  land(key);
  return {flight->result.get(), true};
}

std::shared_ptr<const Entry> SingleFlight::wait_for(const Flight& flight) {
  if (flight.leader == std::this_thread::get_id()) {
    throw Error(ErrorCode::internal, "a cache entry is needed to build itself");
  }
  const Activity activity("waits for another thread that makes the same kernel");
  return flight.result.get();
}

void SingleFlight::land(const Key& key) {
  const std::lock_guard lock(mutex_);
  flights_.erase(key);
}

}  // namespace tilewright::cache
