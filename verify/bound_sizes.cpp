#include "verify/bound_sizes.hpp"

#include <algorithm>
#include <cstddef>

namespace tilewright::verify {

double typical_score(std::vector<double> scores) {
  std::erase_if(scores, [](double score) { return !(score > 0 && score < kWildScore); });
  if (scores.empty()) return 0;
  const auto middle = scores.begin() + static_cast<std::ptrdiff_t>(scores.size() / 2);
  std::nth_element(scores.begin(), middle, scores.end());
  const double limit = 4 * *middle;
  std::erase_if(scores, [&](double score) { return score > limit; });
  return *std::max_element(scores.begin(), scores.end());
}

}  // namespace tilewright::verify
