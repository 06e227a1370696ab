#include "verify/naive.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/float_environment.hpp"
#include "runtime/io/float16.hpp"
#include "verify/digits.hpp"

namespace tilewright::verify {
namespace {

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

float rounded(DType dtype, float value) {
  return dtype == DType::f32 ? value : static_cast<float>(round_to(dtype, value));
}

float rounded_to(F32Products products, float value) {
  if (products == F32Products::ieee || !std::isfinite(value)) return value;
  constexpr std::uint32_t kHalf = 0x1000, kLost = 0x1fff;  // of the last of 11 bits, and below it
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + kHalf) & ~kLost);
}

float rounded_weight(DType dtype, F32Products products, float weight) {
  constexpr float kFactor = 256;
  if (dtype == DType::f32) return rounded_to(products, weight);
  return is_float8(dtype) ? rounded(dtype, weight * kFactor) / kFactor : rounded(dtype, weight);
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
  float maximum = -kFloatInfinity;
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    if (row.keep[column]) maximum = std::max(maximum, row.modified[column]);
  }
  return maximum;
}

// Probabilities replace the modified scores; 0 where an element is dropped. Returns lse.
float softmax(ScoreRow& row, DType dtype, F32Products products, float sink) {
  const float maximum = std::max(row_maximum(row), sink);
  float sum = maximum == sink ? 1.0f : std::exp(sink - maximum);
  if (sink == -kFloatInfinity) sum = 0;
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    float& score = row.modified[column];
    score = row.keep[column] && maximum != -kFloatInfinity ? std::exp(score - maximum) : 0.0f;
    sum += score;
  }
  if (sum == 0) return -kFloatInfinity;  // nothing kept, or only -inf
  for (float& score : row.modified) score = rounded_weight(dtype, products, score / sum);
  return maximum + std::log(sum);
}

// Marks the columns that dropout drops from a row of weights.
void drop(const DropoutDraws& dropout, std::int64_t b, std::int64_t h, std::int64_t r,
          ScoreRow& row) {
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    if (row.keep[column] && !dropout.keeps(b, h, r, static_cast<std::int64_t>(column))) {
      row.keep[column] = 0;
    }
  }
}

}  // namespace

AttentionValues naive_attention(const DenseProblem& problem, const RowSnippets<float>& snippets,
                                DType dtype, DType out_dtype, Executor& threads,
                                F32Products products) {
  const DefaultFloatEnvironment floats;
  const FloatValues q(problem.q), k(problem.k), v(problem.v);
  const auto scale = static_cast<float>(problem.scale);
  const std::int64_t group = q.heads / k.heads;
  AttentionValues result;
  result.out = Values::zeros(q.batch, q.heads, q.rows, v.width);
  const bool has_lse = !is_float8(dtype), rounds_scores = has_lse && dtype != DType::f32;
  if (has_lse) {
    result.lse = result.max_scores = Values::zeros(q.batch, q.heads, q.rows, 1);
  }
  if (problem.wants_weights) {
    result.weights = Values::zeros(q.batch, q.heads, q.rows, k.rows);
  }

  threads.parallel_for(q.batch * q.heads * q.rows, [&](std::int64_t item, int) {
    const std::int64_t r = item % q.rows;
    const std::int64_t h = item / q.rows % q.heads;
    const std::int64_t b = item / q.rows / q.heads;
    const float sink =
        problem.sink ? static_cast<float>(problem.sink->at(b, h, r, 0)) : -kFloatInfinity;
    ScoreRow row(k.rows);
    for (std::int64_t column = 0; column < k.rows; ++column) {
      row.scores[static_cast<std::size_t>(column)] =
          dot(q.row(b, h, r), k.row(b, h / group, column), q.width) * scale;
    }
    const auto weigh = [&](bool wants_lse) {
      snippets(b, h, r, row.scores.data(), row.modified.data(), row.keep.data());
      const float maximum = row_maximum(row);
      const float lse = softmax(row, dtype, products, sink);
      if (!wants_lse) return;
      *result.lse.row(b, h, r) = lse;
      *result.max_scores.row(b, h, r) = maximum;
    };
    if (rounds_scores) {
      weigh(true);
      for (float& score : row.scores) {
        score = static_cast<float>(round_digits(dtype, static_cast<double>(score)));
      }
    }
    weigh(dtype == DType::f32);
    if (problem.dropout) drop(*problem.dropout, b, h, r, row);
    const auto keeping_factor =
        static_cast<float>(problem.dropout ? problem.dropout->keeping_factor(h) : 1);
    if (problem.wants_weights) {
      for (std::size_t column = 0; column < row.keep.size(); ++column) {
        const float p = row.keep[column] ? row.modified[column] * keeping_factor : 0.0f;
        result.weights.row(b, h, r)[column] = rounded(out_dtype, p);
      }
    }
    std::vector<float> sums(static_cast<std::size_t>(v.width));
    for (std::int64_t column = 0; column < v.rows; ++column) {
      if (!row.keep[static_cast<std::size_t>(column)]) continue;
      const float p = row.modified[static_cast<std::size_t>(column)];
      const float* value = v.row(b, h / group, column);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += p * value[i];
    }
    double* out = result.out.row(b, h, r);
    const double out_scale =
        problem.out_scales.empty() ? 1 : problem.out_scales[static_cast<std::size_t>(h)];
    for (std::size_t i = 0; i < sums.size(); ++i) {
      out[i] = rounded(out_dtype, sums[i] * keeping_factor / static_cast<float>(out_scale));
    }
  });
  return result;
}

void round_to_products(F32Products products, DenseProblem& stored) {
  if (products == F32Products::ieee) return;
  for (Values* const tensor : {&stored.q, &stored.k, &stored.v}) {
    for (double& value : tensor->data) {
      value = rounded_to(products, static_cast<float>(value));
    }
  }
}

}  // namespace tilewright::verify
