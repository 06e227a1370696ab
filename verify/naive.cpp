#include "verify/naive.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/float_environment.hpp"
#include "runtime/io/float16.hpp"

namespace tilewright::verify {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float rounded(DType dtype, float value) {
  return dtype == DType::f32 ? value : static_cast<float>(round_to(dtype, value));
}

// A matrix per head in float, exact for every dtype of q, k and v.
struct FloatValues {
  explicit FloatValues(const Values& values)
      : batch(values.batch), heads(values.heads), rows(values.rows), width(values.width) {
    data.reserve(values.data.size());
    for (const double value : values.data) data.push_back(static_cast<float>(value));
  }
  const float* row(std::int64_t b, std::int64_t h, std::int64_t r) const {
    return data.data() + (((batch == 1 ? 0 : b) * heads + h) * rows + r) * width;
  }

  std::int64_t batch, heads, rows, width;
  std::vector<float> data;
};

struct ScoreRow {
  explicit ScoreRow(std::int64_t kv_len)
      : scores(static_cast<std::size_t>(kv_len)), modified(scores.size()), keep(scores.size()) {}

  std::vector<float> scores;
  std::vector<float> modified;
  std::vector<unsigned char> keep;
};

float dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

float row_maximum(const ScoreRow& row) {
  float maximum = -kInfinity;
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    if (row.keep[column]) maximum = std::max(maximum, row.modified[column]);
  }
  return maximum;
}

// Probabilities replace the modified scores; 0 where an element is dropped.
void softmax(ScoreRow& row, DType dtype) {
  const float maximum = row_maximum(row);
  float sum = 0;
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    float& score = row.modified[column];
    score = row.keep[column] && maximum != -kInfinity ? std::exp(score - maximum) : 0.0f;
    sum += score;
  }
  if (sum == 0) return;  // nothing kept, or only -inf
  for (float& score : row.modified) score = rounded(dtype, score / sum);
}

}  // namespace

AttentionValues naive_attention(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                DType dtype, DType out_dtype, Executor& threads) {
  const DefaultFloatEnvironment floats;
  const FloatValues q(problem.q), k(problem.k), v(problem.v);
  const auto scale = static_cast<float>(problem.scale);
  const std::int64_t group = q.heads / k.heads;
  AttentionValues result;
  result.out = Values::zeros(q.batch, q.heads, q.rows, v.width);

  threads.parallel_for(q.batch * q.heads * q.rows, [&](std::int64_t item, int) {
    const std::int64_t r = item % q.rows;
    const std::int64_t h = item / q.rows % q.heads;
    const std::int64_t b = item / q.rows / q.heads;
    ScoreRow row(k.rows);
    for (std::int64_t column = 0; column < k.rows; ++column) {
      const float score = dot(q.row(b, h, r), k.row(b, h / group, column), q.width) * scale;
      row.scores[static_cast<std::size_t>(column)] = rounded(dtype, score);
    }
    snippets(b, h, r, row.scores.data(), row.modified.data(), row.keep.data());
    softmax(row, dtype);
    std::vector<float> sums(static_cast<std::size_t>(v.width));
    for (std::int64_t column = 0; column < v.rows; ++column) {
      if (!row.keep[static_cast<std::size_t>(column)]) continue;
      const float p = row.modified[static_cast<std::size_t>(column)];
      const float* value = v.row(b, h / group, column);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += p * value[i];
    }
    double* out = result.out.row(b, h, r);
    for (std::size_t i = 0; i < sums.size(); ++i) out[i] = rounded(out_dtype, sums[i]);
  });
  return result;
}

}  // namespace tilewright::verify
