#include "base/environment.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "tests/support/catch.hpp"

using namespace tilewright;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> names_in_table() {
  std::set<std::string> names;
  for (const EnvironmentVariable& variable : environment_variables()) {
    names.emplace(variable.name);
  }
  return names;
}

// The name that is meant by NAME, or "none"; "known" where the table has NAME.
std::string meant_by(const std::string& name) {
  const std::vector<std::string> environment = {"PATH=/bin", name + "=1"};
  const std::vector<UnknownVariable> unknown = unknown_variables(environment);
  if (unknown.empty()) return "known";
  CHECK(unknown.front().name == name);
  return unknown.front().nearest.empty() ? "none" : unknown.front().nearest;
}

}  // namespace

TEST_CASE("environment: every variable that the code reads is in the table, and in docs/cli.md") {
  const std::filesystem::path root = TILEWRIGHT_SOURCE_DIR;
  const std::regex literal("\"(TILEWRIGHT_[A-Z_]*[A-Z])\"");
  std::set<std::string> read;
  for (const char* room : {"base", "cache", "generator", "runtime", "verify", "picture", "cli"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / room)) {
      if (entry.path().extension() != ".cpp" || entry.path().filename() == "environment.cpp") {
        continue;
      }
      const std::string text = text_of(entry.path());
      for (std::sregex_iterator match(text.begin(), text.end(), literal), end; match != end;
           ++match) {
        read.insert((*match)[1]);
      }
    }
  }
  CHECK(read == names_in_table());
  const std::string reference = text_of(root / "docs/cli.md");
  for (const std::string& name : names_in_table()) {
    CAPTURE(name);
    CHECK(reference.find("| `" + name + "`") != std::string::npos);
  }
}

TEST_CASE("environment: an unknown variable is named with the nearest known one") {
  CHECK(meant_by("TILEWRIGHT_CACHE") == "known");
  CHECK(meant_by("TILEWRIGHT_TEST_SEED") == "known");
  CHECK(meant_by("TILEWRIGHT_CAHCE") == "TILEWRIGHT_CACHE");
  CHECK(meant_by("TILEWRIGHT_CACHE_DIR") == "TILEWRIGHT_CACHE");
  CHECK(meant_by("TILEWRIGHT_CACHE_SIZE") == "TILEWRIGHT_CACHE_MAX_SIZE");
  CHECK(meant_by("TILEWRIGHT_BUNDLE") == "TILEWRIGHT_BUNDLES");
  CHECK(meant_by("TILEWRIGHT_NUM_THREADS") == "TILEWRIGHT_THREADS");
  CHECK(meant_by("TILEWRIGHT_threads") == "TILEWRIGHT_THREADS");
  CHECK(meant_by("TILEWRIGTH_JIT") == "TILEWRIGHT_JIT");
  CHECK(meant_by("tilewright_jit") == "TILEWRIGHT_JIT");
  CHECK(meant_by("TILEWRIGHT_PURPLE") == "none");
  CHECK(meant_by("TILE_SIZE") == "known");
  CHECK(meant_by("tile") == "known");
}

TEST_CASE("environment: the words say what is set and what was meant") {
  CHECK(describe({"TILEWRIGHT_CAHCE", "TILEWRIGHT_CACHE"}) ==
        "TILEWRIGHT_CAHCE is set, but tilewright reads no variable of that name: did you mean "
        "TILEWRIGHT_CACHE?");
  CHECK(describe({"TILEWRIGHT_PURPLE", ""}) ==
        "TILEWRIGHT_PURPLE is set, but tilewright reads no variable of that name");
}
