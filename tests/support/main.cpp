// main() of the executables of Catch2: where every test case was skipped, the exit status is
// kSkipped, and ctest says Skipped.

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using Listener = Catch::EventListenerBase;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
#endif

#include "tests/support/skip.hpp"

namespace {

int cases = 0;
int skipped_cases = 0;

class SkipCounter : public Listener {
 public:
  using Listener::Listener;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    Listener::testCaseStarting(info);
    said_before_ = tilewright::test::skips_said;
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    Listener::testCaseEnded(stats);
    const bool said_so = tilewright::test::skips_said > said_before_;
    ++cases;
    skipped_cases += said_so && stats.totals.assertions.total() == 0 ? 1 : 0;
  }

 private:
  int said_before_ = 0;
};

}  // namespace

CATCH_REGISTER_LISTENER(SkipCounter)

int main(int argc, char** argv) {
  const int status = Catch::Session().run(argc, argv);
  if (skipped_cases > 0) {
    std::printf("[SKIP] %d of %d test cases ran nothing\n", skipped_cases, cases);
  }
  const bool ran_nothing = cases > 0 && skipped_cases == cases;
  return status == 0 && ran_nothing ? tilewright::test::kSkipped : status;
}
