#include "verify/bound_sizes.hpp"

#include <algorithm>
#include <cstddef>

namespace tilewright::verify {

BoundSizes BoundSizes::zeros(std::int64_t batch, std::int64_t heads, std::int64_t rows,
                             std::int64_t value_dim) {
  const Values of_rows = Values::zeros(batch, heads, rows, 1);
  return {.scores = of_rows,
          .products = of_rows,
          .values = of_rows,
          .lost = Values::zeros(batch, heads, rows, value_dim)};
}

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
