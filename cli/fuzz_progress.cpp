#include "cli/fuzz_progress.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace tilewright::cli {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;

void remember_interrupt(int) {
  was_interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

void say_to_stderr(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

std::string progress_text(const verify::fuzz::CampaignState& state) {
  const std::int64_t covered = state.pairs_covered + state.compile_pairs_covered;
  const std::int64_t possible = state.pairs_possible + state.compile_pairs_possible;
  return fmt::format(
      "{:.0f} s: {} cases ({:.1f}/s), {} kernels, {:.1f} % of pairs, {} failed", state.seconds,
      state.cases + state.compiles,
      static_cast<double>(state.cases + state.compiles) / std::max(state.seconds, 0.001),
      state.kernels,
      100.0 * static_cast<double>(covered) /
          static_cast<double>(std::max<std::int64_t>(possible, 1)),
      state.failed);
}

}  // namespace

FuzzProgress::FuzzProgress(bool json)
    : terminal_(::isatty(STDERR_FILENO) != 0), quiet_(json && !terminal_) {}

void FuzzProgress::update(const verify::fuzz::CampaignState& state) {
  if (quiet_ || Clock::now() < next_) return;
  const bool is_first = next_ == Clock::time_point{};
  next_ = Clock::now() + (terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10));
  if (terminal_) return say_to_stderr("\r\x1b[K" + progress_text(state));
  if (!is_first) say_to_stderr(progress_text(state) + '\n');
}

void FuzzProgress::line(std::string_view text) {
  if (quiet_) return;
  say_to_stderr(fmt::format("{}{}\n", terminal_ ? "\r\x1b[K" : "", text));
}

void FuzzProgress::end() {
  if (terminal_) say_to_stderr("\r\x1b[K");
}

void stop_on_interrupt() {
  std::signal(SIGINT, remember_interrupt);
}

bool interrupted() {
  return was_interrupted != 0;
}

}  // namespace tilewright::cli
