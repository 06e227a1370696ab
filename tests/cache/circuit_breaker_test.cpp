#include "cache/circuit_breaker.hpp"

#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace std::chrono_literals;

namespace {

const CircuitBreaker::Limits kLimits{.failures = 3, .first_pause = 8s, .longest_pause = 20s};
const CircuitBreaker::Clock::time_point kStart{1h};

void fail_three_times(CircuitBreaker& breaker) {
  for (int i = 0; i < 3; ++i) {
    REQUIRE(breaker.allows(kStart));
    breaker.failed(kStart);
  }
}

}  // namespace

TEST_CASE("circuit breaker: failures in a row open it, others do not") {
  CircuitBreaker breaker(kLimits);
  for (int i = 0; i < 10; ++i) {
    breaker.failed(kStart);
    breaker.failed(kStart);
    REQUIRE(breaker.allows(kStart));
    breaker.succeeded();
  }
  fail_three_times(breaker);
  REQUIRE(!breaker.allows(kStart));
}

TEST_CASE("circuit breaker: after a pause one thread tries, and a success lets all through") {
  CircuitBreaker breaker(kLimits);
  fail_three_times(breaker);
  REQUIRE(!breaker.allows(kStart + 7s));
  REQUIRE(breaker.allows(kStart + 10s));  // 8 s, and up to a quarter more by chance
  REQUIRE(!breaker.allows(kStart + 10s));
  breaker.succeeded();
  REQUIRE(breaker.allows(kStart + 10s));
  REQUIRE(breaker.allows(kStart + 10s));
}

TEST_CASE("circuit breaker: a try that fails doubles the pause, up to a limit") {
  CircuitBreaker breaker(kLimits);
  fail_three_times(breaker);
  auto now = kStart + 10s;
  for (const auto& [least, most] :
       {std::pair(16s, 20s), std::pair(20s, 25s), std::pair(20s, 25s)}) {
    REQUIRE(breaker.allows(now));
    breaker.failed(now);
    REQUIRE(!breaker.allows(now + least - 1s));
    now += most;
  }
  REQUIRE(breaker.allows(now));
  breaker.succeeded();
  fail_three_times(breaker);
  REQUIRE(breaker.allows(kStart + 10s));  // the first pause again
}

TEST_CASE("circuit breaker: threads that fail side by side lengthen the pause once") {
  CircuitBreaker breaker(kLimits);
  for (int i = 0; i < 8; ++i) REQUIRE(breaker.allows(kStart));
  for (int i = 0; i < 8; ++i) breaker.failed(kStart);
  REQUIRE(!breaker.allows(kStart + 7s));
  REQUIRE(breaker.allows(kStart + 10s));
}
