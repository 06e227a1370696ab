#pragma once

#include <chrono>
#include <string_view>

#include "verify/fuzz/campaign.hpp"

namespace tilewright::cli {

/// Says on stderr how far a campaign is: one line that is written over on a terminal, a line every
/// ten seconds elsewhere, nothing with --json off a terminal.
class FuzzProgress {
 public:
  explicit FuzzProgress(bool json);

  void update(const verify::fuzz::CampaignState& state);
  /// A line that stays.
  void line(std::string_view text);
  /// Wipes the line that is written over.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool quiet_;
  Clock::time_point next_ = {};
};

/// From now on Ctrl-C, once, only sets what interrupted() says; a second one ends the process.
void stop_on_interrupt();
bool interrupted();

}  // namespace tilewright::cli
