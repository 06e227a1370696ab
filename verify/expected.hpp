#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "../generator/snippet/snippet.hpp"
#include "attention_values.hpp"
#include "judge.hpp"
#include "reference.hpp"
#include "unjudged.hpp"

namespace tilewright::verify {

/// What a call's results are judged by.
struct Expected {
  Reference reference;
  AttentionValues naive;
  Rule rule;
  Unjudged unjudged = {};  ///< reference is NaN in these rows
  /// One value of each scale that has NaN or infinity, or of out_scale one below 2^-126.
  std::map<SnippetKind, double> odd_scales = {};
  /// Elements that mask_mod keeps in float and drops in double, or the other way round.
  std::int64_t mask_disagreements = 0;
  std::vector<double> dropout = {};  ///< of each head; empty where the spec has none
  double reference_ms = 0;
  double naive_ms = 0;
};

/// Told how far a check is: a step's name, and how much of all rows is done, 0 to 1.
using ReportProgress = std::function<void(std::string_view step, double share)>;

}  // namespace tilewright::verify
