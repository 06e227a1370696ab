#include "cli/fuzz_progress.hpp"

#include <algorithm>
#include <csignal>
#include <string>

#include <fmt/format.h>

namespace tilewright::cli {
namespace {

volatile std::sig_atomic_t was_interrupted = 0;

void remember_interrupt(int) {
  was_interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

std::string state_text(const verify::fuzz::CampaignState& state) {
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

void FuzzProgress::update(const verify::fuzz::CampaignState& state) {
  if (line_.is_quiet() || Clock::now() < next_) return;
  next_ = Clock::now() + line_.interval();
  line_.update(state_text(state));
}

void stop_on_interrupt() {
  std::signal(SIGINT, remember_interrupt);
}

bool interrupted() {
  return was_interrupted != 0;
}

}  // namespace tilewright::cli
