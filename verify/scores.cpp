#include "verify/scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::verify {
namespace {

// [.., rows, width] -> [.., width, rows], so that the loop over columns of a score row is the inner
// one: each sum keeps its order and the compiler still has something to vectorise.
Values transposed(const Values& values) {
  Values result = Values::zeros(values.batch, values.heads, values.width, values.rows);
  for (std::int64_t b = 0; b < values.batch; ++b) {
    for (std::int64_t h = 0; h < values.heads; ++h) {
      for (std::int64_t row = 0; row < values.rows; ++row) {
        for (std::int64_t i = 0; i < values.width; ++i) {
          result.at(b, h, i, row) = values.at(b, h, row, i);
        }
      }
    }
  }
  return result;
}

}  // namespace

Scores::Scores(const Values& q, const Values& k, double scale)
    : q_(q), k_transposed_(transposed(k)), scale_(scale) {}

void Scores::row(std::int64_t b, std::int64_t h, std::int64_t row,
                 std::vector<double>& scores) const {
  const std::int64_t k_batch = k_transposed_.batch == 1 ? 0 : b;
  const std::int64_t h_kv = h / (q_.heads / k_transposed_.heads);
  const double* q = q_.row(b, h, row);
  std::fill(scores.begin(), scores.end(), 0.0);
  for (std::int64_t i = 0; i < q_.width; ++i) {
    const double* k = k_transposed_.row(k_batch, h_kv, i);
    for (std::size_t column = 0; column < scores.size(); ++column) {
      scores[column] += q[i] * k[column];
    }
  }
  for (double& score : scores) score *= scale_;
}

void bound_scores(std::vector<double>& modified) {
  constexpr double kLimit = 0x1.ffffffp127;
  for (double& score : modified) {
    if (std::fabs(score) >= kLimit) {
      score = std::copysign(std::numeric_limits<double>::infinity(), score);
    }
  }
}

}  // namespace tilewright::verify
