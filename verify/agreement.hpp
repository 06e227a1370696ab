#pragma once

#include <string>
#include <vector>

#include "judge.hpp"

namespace tilewright::verify {

// Whether two devices agree on one call. Each is judged against the reference on its own; beyond
// that, where the references of both are finite,
//
//   |first - second| <= the first's bound + the second's     each element of out
//                       the same with the bounds of lse     each row of lse

/// One of the two, as it was judged.
struct DeviceResult {
  const AttentionValues& values;
  const AttentionValues& reference;  ///< NaN where this one is not judged
  const Verdict& verdict;
  const Rule& rule;
};

struct Agreement {
  bool ok = true;
  double difference = 0;                  ///< at the element of out that comes nearest to its bound
  double bound = 0;                       ///< of that element, both together
  double lse_difference = 0;              ///< at the row that comes nearest to its bound
  double lse_bound = 0;                   ///< of that row
  std::vector<std::string> reasons = {};  ///< one sentence each; empty if ok
};

/// Compares them. lse is compared where both and their references hold it.
/// @throws Error with code usage where the sizes of the results differ
Agreement compare(const DeviceResult& first, const DeviceResult& second);

}  // namespace tilewright::verify
