#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../verify/random.hpp"
#include "features.hpp"

namespace tilewright::verify::fuzz {

/// One value of a factor.
struct Feature {
  Factor factor;
  int value;
};

/// Whether a value counts as a feature: that a snippet does without if or functions does not.
bool is_feature(Feature feature);

/// Two features that one case can show at once.
struct FeaturePair {
  Feature first;
  Feature second;

  /// "dtype=bf16 with outputs=lse"
  std::string describe() const;
};

/// Whether one case can show both, as far as two features alone decide it: a spec without mask_mod
/// has no mask that is per head, one kv head cannot be shared.
bool can_meet(Feature first, Feature second);

/// Which pairs of features of different factors have been shown by a case, out of those that cases
/// of a kind can show.
class PairCoverage {
 public:
  /// @param allowed the values that cases of this kind may have; a factor without any is left out
  explicit PairCoverage(const Features& allowed);

  /// Counts a case in.
  void add(const Features& features);

  /// Pairs that a case would be the first to show.
  std::int64_t gain(const Features& features) const;

  std::int64_t covered() const { return covered_; }
  std::int64_t possible() const { return static_cast<std::int64_t>(pairs_.size()); }
  const Features& allowed() const { return allowed_; }

  /// One of the pairs that no case has shown; nothing where there is none.
  /// @param fixed only pairs that a case with these features can show; 0 for a factor that is free
  std::optional<FeaturePair> missing(Random& random, const Features& fixed = {}) const;
  /// All of them.
  std::vector<FeaturePair> all_missing() const;

 private:
  static constexpr std::size_t kValues = 8;  // of a factor, at most
  static std::size_t index(Feature a, Feature b);

  Features allowed_;
  std::vector<FeaturePair> pairs_;
  std::vector<bool> shown_;  // by index(); true too for what cannot be
  std::int64_t covered_ = 0;
};

}  // namespace tilewright::verify::fuzz
