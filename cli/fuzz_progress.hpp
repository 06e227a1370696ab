#pragma once

#include <chrono>
#include <string_view>

#include "cli/progress.hpp"
#include "fuzz/campaign.hpp"

namespace tilewright::cli {

/// Says on stderr how far a campaign is, as ProgressLine does. Without a thread, since a campaign
/// forks.
class FuzzProgress {
 public:
  explicit FuzzProgress(bool json) : line_(json) { next_ = Clock::now() + line_.interval(); }

  void update(const verify::fuzz::CampaignState& state);
  /// A line that stays.
  void line(std::string_view text) { line_.line(text); }
  /// Wipes the line that is written over.
  void end() { line_.wipe(); }

 private:
  using Clock = std::chrono::steady_clock;

  ProgressLine line_;
  Clock::time_point next_;
};

/// From now on Ctrl-C, once, only sets what interrupted() says; a second one ends the process.
void stop_on_interrupt();
bool interrupted();

}  // namespace tilewright::cli
