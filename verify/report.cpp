#include "verify/report.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "verify/nothing_judged.hpp"

namespace tilewright::verify {

bool Report::shows_right() const {
  return ok && !says_nothing(unjudged) && !says_nothing(other_unjudged) &&
         !says_nothing(their_unjudged);
}

std::vector<std::string> Report::reasons() const {
  std::vector<std::string> reasons = broken_promises;
  reasons.insert(reasons.end(), verdict.reasons.begin(), verdict.reasons.end());
  reasons.insert(reasons.end(), sequence_reasons.begin(), sequence_reasons.end());
  const auto nothing_of_out = [](const UnjudgedCounts& counts) {
    return nothing_judged("out", counts.unreached > 0);
  };
  if (says_nothing(unjudged)) reasons.push_back(nothing_of_out(unjudged));
  if (other_verdict) {
    for (const std::string& reason : other_verdict->reasons) {
      reasons.push_back("on the device that it was compared with: " + reason);
    }
    if (says_nothing(other_unjudged)) {
      reasons.push_back("on the device that it was compared with: " +
                        nothing_of_out(other_unjudged));
    }
  }
  if (their_verdict) {
    for (const std::string& reason : their_verdict->reasons) {
      reasons.push_back("the result from elsewhere: " + reason);
    }
    if (says_nothing(their_unjudged)) {
      reasons.push_back("the result from elsewhere: " + nothing_of_out(their_unjudged));
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
    reasons.push_back(fmt::format("the {} is wrong in {} of {}: {}",
                                  mask ? "block mask" : "plan's tile map",
                                  mask_verdict->wrong_tiles, counted(mask_verdict->tiles, "tile"),
                                  mask_verdict->first_wrong));
  }
  return reasons;
}

}  // namespace tilewright::verify
