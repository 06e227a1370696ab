#include "base/log_file.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include <unistd.h>

#include "tests/support/catch.hpp"

using namespace tilewright;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("log file: lines have a time, the process and a level, and are appended") {
  const fs::path path = fs::temp_directory_path() / ("tilewright_log_" + std::to_string(getpid()));
  {
    const LogFile log(path.c_str());
    REQUIRE(log.is_open());
    CHECK_FALSE(log.has_debug());
    log.write("info", "first");
  }
  const LogFile again((path.string() + ":debug").c_str());
  CHECK(again.has_debug());
  again.write("debug", "second\n\x1b[31m");
  const std::string text = contents(path);
  fs::remove(path);
  const std::string start = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z tilewright\[)" +
                            std::to_string(getpid()) + R"(\] )";
  CHECK(std::regex_match(
      text, std::regex(start + "info first\n" + start + R"(debug second\\n\\x1b\[31m)" + "\n")));
}

TEST_CASE("log file: none is asked for, or it cannot be opened") {
  for (const char* value : {static_cast<const char*>(nullptr), "", ":debug"}) {
    const LogFile none(value);
    CHECK_FALSE(none.is_open());
    CHECK(none.problem().empty());
    none.write("info", "nowhere");
  }
  const LogFile missing("/nonexistent/folder/log:debug");
  CHECK_FALSE(missing.is_open());
  CHECK_FALSE(missing.has_debug());
  CHECK(missing.problem() ==
        "TILEWRIGHT_LOG: cannot open \"/nonexistent/folder/log\": No such file or directory");
  CHECK(LogFile("stderr").is_open());
}
