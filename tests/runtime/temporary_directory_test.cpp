#include "runtime/temporary_directory.hpp"

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
