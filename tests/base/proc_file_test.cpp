#include "base/proc_file.hpp"

#include <string>

#include <unistd.h>

#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::StartsWith;

TEST_CASE("read_proc_file: a file whose size reads as 0") {
  const std::string self = std::to_string(::getpid());
  CHECK_THAT(read_proc_file("/proc/self/stat"), StartsWith(self + " ("));
}

TEST_CASE("read_proc_file: longer than one read(2)") {
  CHECK(read_proc_file("/proc/self/maps").size() > 4096);
}

TEST_CASE("read_proc_file: what cannot be read is empty") {
  CHECK(read_proc_file("/proc/self/none").empty());
  CHECK(read_proc_file("/proc/self").empty());      // opens, and read(2) fails: EISDIR
  CHECK(read_proc_file("/proc/self/mem").empty());  // opens, and read(2) fails: EIO
}
