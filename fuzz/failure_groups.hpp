#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "case.hpp"
#include "outcome.hpp"

namespace tilewright::verify::fuzz {

/// What a minimal case still needs to fail, one word for each feature that shrinking could not take
/// away: "bf16", "offsets", "mask_mod", "less", "buffers". In a fixed order.
std::vector<std::string> needed_features(const FuzzCase& minimal);

/// Failures that are likely to have one cause.
struct FailureGroup {
  std::string name;    ///< "wrong_result: bf16, mask_mod, less"; of undefined behaviour its place
  FuzzCase fuzz_case;  ///< the one with the fewest tokens
  Outcome outcome;     ///< of that case
  std::int64_t count = 0;

  Failure failure() const { return outcome.failure; }
};

/// Groups failures: of the same class, and at the same place of a snippet where its behaviour is
/// undefined. Else it depends on what the cases are:
class FailureGroups {
 public:
  enum class Of : std::uint8_t {
    found_cases,    ///< what their specs show is the same, whatever the call
    minimal_cases,  ///< what they still need to fail is the same
  };

  explicit FailureGroups(Of of) : of_(of) {}

  /// @param count of the failures that the case stands for
  /// @return whether it is the first of its group
  bool add(FuzzCase fuzz_case, Outcome outcome, std::int64_t count = 1);

  /// In the order in which they were met.
  const std::vector<FailureGroup>& groups() const { return groups_; }

 private:
  std::string name_of(const FuzzCase& fuzz_case, const Outcome& outcome) const;

  Of of_;
  std::vector<FailureGroup> groups_ = {};
};

}  // namespace tilewright::verify::fuzz
