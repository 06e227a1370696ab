#pragma once

#include <cstdlib>
#include <string>

namespace tilewright::test {

/// The emulated GPU with more multiprocessors than calls have q tiles.
class ManyMultiprocessors {
 public:
  explicit ManyMultiprocessors(int count = 24) {
    ::setenv(kName, std::to_string(count).c_str(), 1);
  }
  ~ManyMultiprocessors() { ::unsetenv(kName); }
  ManyMultiprocessors(const ManyMultiprocessors&) = delete;
  ManyMultiprocessors& operator=(const ManyMultiprocessors&) = delete;

 private:
  static constexpr const char* kName = "TILEWRIGHT_EMULATED_MULTIPROCESSORS";
};

}  // namespace tilewright::test
