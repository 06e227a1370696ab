#include "cache/directory.hpp"

#include <cstdlib>
#include <fstream>

#include <unistd.h>

#include "tests/cache/support.hpp"
#include "tests/support/catch.hpp"

using namespace tilewright::cache;
using namespace cache_test;
using Catch::Matchers::ContainsSubstring;

namespace {

// The default directory in a process with only these variables.
std::optional<std::filesystem::path> directory_with(const char* cache, const char* xdg,
                                                    const char* home) {
  const TemporaryFolder folder;
  const std::string answer = folder / "answer";
  const int status = run_in_child([&] {
    ::clearenv();
    if (cache != nullptr) ::setenv("TILEWRIGHT_CACHE", cache, 1);
    if (xdg != nullptr) ::setenv("XDG_CACHE_HOME", xdg, 1);
    if (home != nullptr) ::setenv("HOME", home, 1);
    if (const auto path = default_directory()) std::ofstream(answer) << path->native();
    return 0;
  });
  REQUIRE(status == 0);
  std::ifstream stream(answer);
  std::string text;
  if (!std::getline(stream, text)) return std::nullopt;
  return text;
}

std::string problem_of(const std::filesystem::path& path, IfAbsent if_absent = IfAbsent::report) {
  const PrivateFolder opened = open_private_folder(path, if_absent);
  REQUIRE(static_cast<bool>(opened.folder) == opened.problem.empty());
  return opened.problem;
}

}  // namespace

TEST_CASE("directory: the environment is asked in the documented order") {
  REQUIRE(directory_with("/a", "/b", "/c") == "/a");
  REQUIRE(directory_with(nullptr, "/b", "/c") == "/b/tilewright");
  REQUIRE(directory_with(nullptr, nullptr, "/c") == "/c/.cache/tilewright");
  REQUIRE(directory_with("", "", "/c") == "/c/.cache/tilewright");
  REQUIRE(directory_with(nullptr, "relative", "/c") == "/c/.cache/tilewright");
}

TEST_CASE("directory: without HOME the password file knows the home") {
  const auto path = directory_with(nullptr, nullptr, nullptr);
  if (!path) return;  // a user without an entry there
  REQUIRE(path->is_absolute());
  REQUIRE_THAT(path->native(), ContainsSubstring(".cache/tilewright"));
}

TEST_CASE("directory: it is made with its parents, for this user only") {
  const TemporaryFolder folder;
  const auto path = folder / "a" / "b" / "";
  REQUIRE(open_private_folder(path, IfAbsent::report).absent);
  REQUIRE(problem_of(path, IfAbsent::create).empty());
  for (const auto& made : {folder / "a", folder / "a" / "b"}) {
    struct stat status {};
    REQUIRE(::stat(made.c_str(), &status) == 0);
    REQUIRE((status.st_mode & 07777) == 0700);
  }
}

TEST_CASE("directory: one that others can write to is refused") {
  const TemporaryFolder folder;
  const mode_t mode = GENERATE(0770U, 0707U, 01777U);
  REQUIRE(::chmod(folder.path().c_str(), mode) == 0);
  REQUIRE_THAT(problem_of(folder.path()), ContainsSubstring("others can write to it"));
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(problem_of(folder.path()).empty());
}

TEST_CASE("directory: one that belongs to somebody else is refused") {
  const TemporaryFolder folder;
  if (::geteuid() == 0) {
    REQUIRE(::chown(folder.path().c_str(), 65534, 65534) == 0);
    REQUIRE_THAT(problem_of(folder.path()),
                 ContainsSubstring("belongs to user 65534, not to user 0"));
  } else {
    REQUIRE_THAT(problem_of("/usr"), ContainsSubstring("belongs to user 0"));
  }
}

TEST_CASE("directory: a symbolic link is refused, also with a slash behind it") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_directory_symlink("real", folder / "link");
  for (const auto& path : {folder / "link", folder / "link/", folder / "link//"}) {
    REQUIRE_THAT(problem_of(path, IfAbsent::create), ContainsSubstring("symbolic link"));
  }
  std::ofstream(folder / "file") << "x";
  REQUIRE_THAT(problem_of(folder / "file", IfAbsent::create), ContainsSubstring("not a directory"));
}

TEST_CASE("directory: where it cannot be made the reason is told") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "x";
  REQUIRE_THAT(problem_of(folder / "file" / "cache", IfAbsent::create),
               ContainsSubstring("Not a directory"));
  REQUIRE_THAT(problem_of("/proc/tilewright/cache", IfAbsent::create),
               ContainsSubstring("\"/proc/tilewright/cache\" cannot be used"));
}
