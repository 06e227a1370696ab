#include "verify/report.hpp"

#include <fmt/format.h>

namespace tilewright::verify {

std::vector<std::string> Report::reasons() const {
  std::vector<std::string> reasons = broken_promises;
  reasons.insert(reasons.end(), verdict.reasons.begin(), verdict.reasons.end());
  reasons.insert(reasons.end(), sequence_reasons.begin(), sequence_reasons.end());
  if (other_verdict) {
    for (const std::string& reason : other_verdict->reasons) {
      reasons.push_back("on the device that it was compared with: " + reason);
    }
  }
  if (their_verdict) {
    for (const std::string& reason : their_verdict->reasons) {
      reasons.push_back("the result from elsewhere: " + reason);
    }
  }
  if (their_agreement) {
    for (const std::string& reason : their_agreement->reasons) {
      reasons.push_back("the result from elsewhere and the kernel's: " + reason);
    }
  }
  if (agreement) {
    reasons.insert(reasons.end(), agreement->reasons.begin(), agreement->reasons.end());
  }
  if (damage) reasons.push_back(*damage);
  if (mask_verdict && !mask_verdict->ok) {
    reasons.push_back(fmt::format(
        "the {} is wrong in {} of {} tiles: {}", mask ? "block mask" : "plan's tile map",
        mask_verdict->wrong_tiles, mask_verdict->tiles, mask_verdict->first_wrong));
  }
  return reasons;
}

}  // namespace tilewright::verify
