#pragma once

#include <chrono>
#include <thread>

namespace tilewright::test {

/// Whether a condition comes to hold within ten seconds.
template <typename Condition>
bool holds_soon(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

}  // namespace tilewright::test
