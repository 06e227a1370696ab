#include <cstdlib>
#include <set>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/full_run.hpp"

namespace {

class Seed {
 public:
  explicit Seed(unsigned seed) : before_(std::getenv(kName) ? std::getenv(kName) : "") {
    ::setenv(kName, std::to_string(seed).c_str(), 1);
  }
  ~Seed() { before_.empty() ? ::unsetenv(kName) : ::setenv(kName, before_.c_str(), 1); }
  Seed(const Seed&) = delete;
  Seed& operator=(const Seed&) = delete;

 private:
  static constexpr const char* kName = "TILEWRIGHT_TEST_SEED";
  std::string before_;
};

}  // namespace

TEST_CASE("share of the day: a campaign that is due every day or every eighth reaches each share") {
  const unsigned step = GENERATE(1U, 8U);
  for (const std::size_t parts : {2, 4, 6, 8, 16, 24, 32}) {
    for (unsigned first = 20261101; first < 20261101 + step; ++first) {
      CAPTURE(step, parts, first);
      std::set<std::size_t> taken;
      for (unsigned run = 0; run < 3 * parts; ++run) {
        const Seed seed(first + step * run);
        taken.insert(share_of_the_day(parts));
      }
      CHECK(taken.size() == parts);
    }
  }
}
