#include "cli/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/escaped.hpp"

namespace tilewright::cli {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr double kSecondsBeforeEstimate = 2;
constexpr std::chrono::seconds kQuietAtFirst{1};

// Progress is a courtesy: where it cannot be written, the work goes on.
void write_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::size_t terminal_width() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

std::string duration(double seconds) {
  const auto whole = std::lround(seconds);
  return whole < 120 ? fmt::format("{} s", whole) : fmt::format("{} min", (whole + 30) / 60);
}

}  // namespace

ProgressLine::ProgressLine(bool json)
    : terminal_(::isatty(STDERR_FILENO) != 0), quiet_(json && !terminal_) {}

std::chrono::milliseconds ProgressLine::interval() const {
  return terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
}

void ProgressLine::update(std::string_view text) {
  if (quiet_) return;
  const std::string shown = escaped(text, Lines::escape);
  if (!terminal_) return write_to_stderr(shown + '\n');
  is_shown_ = true;
  // The rest of the line is cleared after it is written, so that nothing flickers.
  write_to_stderr(fmt::format("\r{}\x1b[K", shown.substr(0, terminal_width() - 1)));
}

void ProgressLine::line(std::string_view text) {
  if (quiet_) return;
  write_to_stderr(fmt::format("{}{}\n", is_shown_ ? "\r\x1b[K" : "", escaped(text, Lines::keep)));
  is_shown_ = false;
}

void ProgressLine::wipe() {
  if (is_shown_) write_to_stderr("\r\x1b[K");
  is_shown_ = false;
}

std::string progress_text(double share, std::string_view what, double seconds) {
  share = std::clamp(share, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  std::string text = fmt::format("[{:#<{}}{:.<{}}] {}; {}", "", filled, "", kBarWidth - filled,
                                 what, duration(seconds));
  if (share > 0 && seconds >= kSecondsBeforeEstimate) {
    text += fmt::format(", about {} left", duration(seconds / share * (1 - share)));
  }
  return text;
}

Progress::Progress(std::size_t steps, bool json) : steps_(steps), line_(json) {
  if (line_.is_quiet()) return;
  try {
    thread_ = std::thread([this] { say_until_the_end(); });
  } catch (const std::system_error&) {
    // No thread is to be had: the work goes on without words.
  }
}

Progress::~Progress() {
  end();
}

void Progress::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  if (thread_.joinable()) thread_.join();
  line_.wipe();
}

void Progress::step(std::string_view name) {
  const std::lock_guard lock(mutex_);
  share_ = static_cast<double>(begun_) / static_cast<double>(std::max<std::size_t>(steps_, 1));
  ++begun_;
  what_ = fmt::format("{} of {}, {}", begun_, steps_, name);
}

void Progress::update(std::string_view what, double share) {
  const std::lock_guard lock(mutex_);
  share_ = share;
  if (what_ != what) what_ = what;
}

void Progress::say_until_the_end() {
  std::unique_lock lock(mutex_);
  auto next = std::max<std::chrono::milliseconds>(kQuietAtFirst, line_.interval());
  while (!end_.wait_for(lock, next, [this] { return ended_; })) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (!what_.empty()) line_.update(progress_text(share_, what_, seconds));
    next = line_.interval();
  }
}

}  // namespace tilewright::cli
