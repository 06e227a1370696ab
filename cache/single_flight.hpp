#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "entry.hpp"

namespace tilewright::cache {

/// Lets one thread of this process work on a key while the others that want it wait for the
/// outcome.
class SingleFlight {
 public:
  using Work = std::function<std::shared_ptr<const Entry>()>;

  struct Outcome {
    std::shared_ptr<const Entry> entry;
    bool led = false;  ///< this thread did the work
  };

  /// The result of `work`, run by this thread or by one that was there first. What it throws, all
  /// that waited for it throw; the next caller tries again. Throws Error (internal) where `work`
  /// itself asks for its own key.
  Outcome run(const Key& key, const Work& work);

 private:
  struct Flight {
    std::thread::id leader;
    std::promise<std::shared_ptr<const Entry>> promise;
    std::shared_future<std::shared_ptr<const Entry>> result;
  };

  std::shared_ptr<const Entry> wait_for(const Flight& flight);
  void land(const Key& key);

  std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<Flight>> flights_;
};

}  // namespace tilewright::cache
