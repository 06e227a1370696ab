#include "cli/progress.hpp"

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include "tests/support/catch.hpp"

using namespace tilewright::cli;
using Catch::Matchers::ContainsSubstring;

namespace {

// What `body` writes to stderr.
template <typename Body>
std::string stderr_of(int reader, int writer, const Body& body) {
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(writer, STDERR_FILENO);
  ::close(writer);
  body();
  std::fflush(stderr);
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::fcntl(reader, F_SETFL, O_NONBLOCK);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got; (got = ::read(reader, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(reader);
  return text;
}

template <typename Body>
std::string on_terminal(const Body& body) {
  int reader = 0, writer = 0;
  winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::openpty(&reader, &writer, nullptr, nullptr, &size) == 0);
  return stderr_of(reader, writer, body);
}

template <typename Body>
std::string in_pipe(const Body& body) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  return stderr_of(ends[0], ends[1], body);
}

void work_for(std::chrono::milliseconds time, bool json) {
  Progress progress(4, json);
  progress.step("first");
  progress.step("second");
  std::this_thread::sleep_for(time);
}

}  // namespace

TEST_CASE("progress: a bar, what is done, the time and an estimate") {
  CHECK(progress_text(0.25, "3 of 12, forward", 24) ==
        "[######..................] 3 of 12, forward; 24 s, about 72 s left");
  CHECK(progress_text(0, "compiling", 30) == "[........................] compiling; 30 s");
  CHECK(progress_text(0.5, "x", 1) == "[############............] x; 1 s");
  CHECK_THAT(progress_text(0.1, "x", 60), ContainsSubstring("about 9 min left"));
}

TEST_CASE("progress: a terminal has one line that is written over, cut to its width, then wiped") {
  using std::chrono::milliseconds;
  const std::string text = on_terminal([] { work_for(milliseconds(1700), true); });
  CHECK_THAT(text, ContainsSubstring("\r[######..................] 2 of 4, seco"));
  CHECK(text.find('\n') == std::string::npos);
  // Never a line that is cleared before it is written.
  CHECK(text.find("\r\x1b[K[") == std::string::npos);
  CHECK(text.ends_with("\r\x1b[K"));
  CHECK(on_terminal([] { work_for(milliseconds(100), false); }).empty());
}

TEST_CASE("progress: elsewhere short work says nothing, and --json never anything") {
  CHECK(in_pipe([] { work_for(std::chrono::milliseconds(1200), false); }).empty());
  CHECK(in_pipe([] {
          ProgressLine line(true);
          line.update("update");
          line.line("line");
        }).empty());
  CHECK(in_pipe([] { ProgressLine(false).update("60 s"); }) == "60 s\n");
}
