#include "runtime/compile/temporary_directory.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include <sys/stat.h>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

/// Sets TMPDIR for one test.
class TemporaryParent {
 public:
  explicit TemporaryParent(const std::string& value) {
    const char* before = std::getenv("TMPDIR");
    had_ = before != nullptr;
    before_ = had_ ? before : "";
    setenv("TMPDIR", value.c_str(), 1);
  }
  ~TemporaryParent() {
    if (had_) {
      setenv("TMPDIR", before_.c_str(), 1);
    } else {
      unsetenv("TMPDIR");
    }
  }

 private:
  bool had_;
  std::string before_;
};

}  // namespace

TEST_CASE("temporary directory: private, and removed with all it holds") {
  fs::path path;
  {
    const TemporaryDirectory directory("test");
    path = directory.path();
    struct stat status = {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0700);
    CHECK_THAT(path.filename().string(), ContainsSubstring("tilewright-test-"));
    fs::create_directories(path / "a" / "b");
    std::ofstream(path / "a" / "b" / "file") << "x";
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("temporary directory: two never share a path, and moving does not remove") {
  TemporaryDirectory first("test");
  TemporaryDirectory second("test");
  CHECK(first.path() != second.path());
  const fs::path kept = second.path(), dropped = first.path();
  first = std::move(second);
  CHECK(fs::exists(kept));
  CHECK_FALSE(fs::exists(dropped));
  const TemporaryDirectory third(std::move(first));
  CHECK(third.path() == kept);
  CHECK(fs::exists(kept));
}

TEST_CASE("temporary directory: what killed processes left is swept after an hour") {
  const TemporaryDirectory outer("outer");
  const TemporaryParent parent(outer.path().string());
  const auto aged = [&](const fs::path& path) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(61));
    return path;
  };
  const auto made = [&](const std::string& name) {
    fs::create_directory(outer.path() / name);
    std::ofstream(outer.path() / name / "kernel.cpp") << "x";
    return outer.path() / name;
  };
  const TemporaryDirectory in_use("inner");
  aged(in_use.path());
  const fs::path left = aged(made("tilewright-inner-AbCdEf"));
  const fs::path recent = made("tilewright-inner-GhIjKl");
  const fs::path other = aged(made("tilewright-other-AbCdEf"));
  const fs::path foreign = aged(made("tilewright-inner-my-notes"));
  const TemporaryDirectory next("inner");
  CHECK_FALSE(fs::exists(left));
  for (const fs::path& kept : {in_use.path(), recent, other}) CHECK(fs::exists(kept));
  CHECK(fs::exists(foreign));
}

TEST_CASE("temporary directory: TMPDIR is respected, and its absence is an error with a hint") {
  const TemporaryDirectory outer("test");
  {
    const TemporaryParent parent(outer.path().string());
    CHECK(TemporaryDirectory("inner").path().parent_path() == outer.path());
  }
  const TemporaryParent parent((outer.path() / "absent").string());
  REQUIRE_THROWS_WITH(TemporaryDirectory("inner"), ContainsSubstring("error[disk]") &&
                                                       ContainsSubstring("absent") &&
                                                       ContainsSubstring("set TMPDIR"));
}
