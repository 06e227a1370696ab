#pragma once

#include <chrono>

namespace tilewright::verify {

/// Runs `body` and adds the milliseconds that it took. Returns what `body` returns.
template <typename Body>
auto timed(double& ms, Body body) {
  struct Stopwatch {
    double& ms;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    ~Stopwatch() {
      ms += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count();
    }
  } stopwatch{ms};
  return body();
}

}  // namespace tilewright::verify
