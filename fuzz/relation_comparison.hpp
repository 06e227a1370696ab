#pragma once

#include <string>

#include "../generator/spec/spec.hpp"
#include "../verify/attention_values.hpp"
#include "relations.hpp"

namespace tilewright::verify::fuzz {

/// One side of a relation against the other. P is rounded to the spec's dtype and sums are in
/// float32, in another order on each side; an error of the scores goes with their size, which lse
/// tells.
class RelationComparison {
 public:
  /// @param wanted must outlive it
  /// @param out_more how much further apart elements of out may be, as inputs were rounded
  RelationComparison(const Spec& spec, const AttentionValues& wanted, double out_more = 0);

  /// @param lse_more what lse of the other side is greater by
  RelationResult with(const AttentionValues& got, double lse_more = 0) const;

 private:
  const AttentionValues& wanted_;
  double out_bound_;
  double lse_bound_;
};

/// @param what "twice v"
/// @param out_step how far apart elements of out may be all the same
/// @return empty, or that `what` gives other bits
std::string same_bits(const AttentionValues& got, const AttentionValues& wanted, const char* what,
                      double out_step = 0);

}  // namespace tilewright::verify::fuzz
