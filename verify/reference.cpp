#include "verify/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/float_environment.hpp"
#include "verify/scores.hpp"

namespace tilewright::verify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Buffers of one row of scores.
struct ScoreRow {
  explicit ScoreRow(std::int64_t kv_len)
      : scores(static_cast<std::size_t>(kv_len)),
        modified(scores.size()),
        factors(scores.size(), 1),
        keep(scores.size()) {}

  std::vector<double> scores;
  std::vector<double> modified;
  std::vector<double> factors;
  std::vector<unsigned char> keep;
};

// The greatest kept score, NaN left aside. -inf where nothing but -inf is kept; then `any` is
// false.
struct RowMaximum {
  double value = -kInfinity;
  bool any = false;
};

RowMaximum row_maximum(const ScoreRow& row) {
  RowMaximum maximum;
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    if (!row.keep[column] || row.modified[column] == -kInfinity) continue;
    maximum.any = true;
    if (row.modified[column] > maximum.value) maximum.value = row.modified[column];
  }
  return maximum;
}

// The length of each row: [batch, heads, rows, 1].
Values lengths_of(const Values& values) {
  Values lengths = Values::zeros(values.batch, values.heads, values.rows, 1);
  for (std::size_t row = 0; row < lengths.data.size(); ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < values.width; ++i) {
      const double value =
          values.data[row * static_cast<std::size_t>(values.width) + static_cast<std::size_t>(i)];
      sum += value * value;
    }
    lengths.data[row] = std::sqrt(sum);
  }
  return lengths;
}

// The finite elements' of each row.
Values greatest_of_rows(const Values& values) {
  Values greatest = Values::zeros(values.batch, values.heads, values.rows, 1);
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    double& of_row = greatest.data[i / static_cast<std::size_t>(values.width)];
    const double magnitude = std::fabs(values.data[i]);
    if (std::isfinite(magnitude)) of_row = std::max(of_row, magnitude);
  }
  return greatest;
}

// What BoundSizes has of a row's scores.
struct ScoreSizes {
  double score = 0, product = 0;
};

// lengths: of the columns' k.
ScoreSizes score_sizes(const ScoreRow& row, const double* lengths) {
  const double least = row_maximum(row).value + std::log(kLeastWeight);
  ScoreSizes sizes;
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    const double score = row.modified[column];
    if (!row.keep[column] || !std::isfinite(score) || score < least) continue;
    sizes.score = std::max(sizes.score, std::fabs(score));
    if (std::isfinite(lengths[column])) sizes.product = std::max(sizes.product, lengths[column]);
  }
  return sizes;
}

// The greatest |out| that weights could give. greatest: |v| of each column
double value_size(const ScoreRow& row, const double* greatest) {
  double size = 0;
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    if (row.keep[column]) size = std::max(size, greatest[column] * row.factors[column]);
  }
  return size;
}

// What the spec's output max_scores holds. A NaN and an infinite score make it NaN, as they do lse.
double max_score(const ScoreRow& row) {
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    const double score = row.modified[column];
    if (row.keep[column] && !(score < kInfinity)) return std::numeric_limits<double>::quiet_NaN();
  }
  return row_maximum(row).value;
}

// What the sink, or -inf, adds to the sum of a row whose greatest score is `greatest`.
double weight_of_sink(double sink, double greatest) {
  return sink == greatest ? 1 : std::exp(sink - greatest);
}

// e^(score - maximum) / sum of each column; none of dropped ones and of -inf.
void write_weights(const ScoreRow& row, double maximum, double sum, double* weights) {
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    const double score = row.modified[column];
    if (!row.keep[column] || score == -kInfinity || row.factors[column] == 0) continue;
    weights[column] = std::exp(score - maximum) / sum * row.factors[column];
  }
}

// What each weight of a row is multiplied by before it meets V: 1 without dropout.
void draw_factors(const DenseProblem& problem, std::int64_t b, std::int64_t h, std::int64_t r,
                  ScoreRow& row) {
  if (!problem.dropout) return;
  for (std::size_t column = 0; column < row.factors.size(); ++column) {
    row.factors[column] = problem.dropout->factor(b, h, r, static_cast<std::int64_t>(column));
  }
}

// What a row of results is added to, all 0.
struct ResultRow {
  double* out;
  double* lost;     // of BoundSizes
  double* weights;  // or null
};

void add_weighted(double* to, const double* value, std::int64_t width, double times) {
  for (std::int64_t i = 0; i < width; ++i) to[i] += times * value[i];
}

void add_weighted_magnitudes(double* to, const double* value, std::int64_t width, double times) {
  for (std::int64_t i = 0; i < width; ++i) {
    const double magnitude = std::fabs(times * value[i]);
    if (std::isfinite(magnitude)) to[i] += magnitude;
  }
}

// Returns lse.
double softmax_times_values(const ScoreRow& row, const Values& v, std::int64_t b, std::int64_t h_kv,
                            double sink, const ResultRow& result) {
  const auto& [out, lost, weights] = result;
  RowMaximum maximum = row_maximum(row);
  if (std::isnan(sink)) {
    std::fill_n(out, v.width, sink);
    if (weights) write_weights(row, 0, sink, weights);
    return sink;
  }
  if (!maximum.any) return sink;
  maximum.value = std::max(maximum.value, sink);
  double sum = sink == -kInfinity ? 0 : weight_of_sink(sink, maximum.value);
  for (std::size_t column = 0; column < row.keep.size(); ++column) {
    if (!row.keep[column]) continue;
    const double p = std::exp(row.modified[column] - maximum.value);
    const double* value = v.row(b, h_kv, static_cast<std::int64_t>(column));
    sum += p;
    const double factor = row.factors[column];
    if (factor == 0) continue;
    add_weighted(out, value, v.width, p * factor);
    if (p < kLeastSureWeight && p > 0) add_weighted_magnitudes(lost, value, v.width, p * factor);
  }
  const bool leaves_nothing = sink == kInfinity && !std::isnan(sum);
  if (weights && !leaves_nothing) write_weights(row, maximum.value, sum, weights);
  for (std::int64_t i = 0; i < v.width; ++i) {
    out[i] = leaves_nothing ? 0 : out[i] / sum;
    lost[i] = leaves_nothing || !(sum > 0) ? 0 : lost[i] / sum;
  }
  return maximum.value + std::log(sum);
}

}  // namespace

Reference reference_attention(const DenseProblem& problem, const RowSnippets<double>& snippets,
                              Executor& threads) {
  const DefaultFloatEnvironment floats;
  const Values& q = problem.q;
  const Values& v = problem.v;
  const Scores scores(q, problem.k, problem.scale);
  const std::int64_t group = q.heads / problem.k.heads;

  Reference reference;
  reference.values.out = Values::zeros(q.batch, q.heads, q.rows, v.width);
  reference.values.lse = Values::zeros(q.batch, q.heads, q.rows, 1);
  reference.values.max_scores = Values::zeros(q.batch, q.heads, q.rows, 1);
  if (problem.wants_weights) {
    reference.values.weights = Values::zeros(q.batch, q.heads, q.rows, v.rows);
  }
  reference.sizes = BoundSizes::zeros(q.batch, q.heads, q.rows, v.width);
  BoundSizes& sizes = reference.sizes;
  const Values q_lengths = lengths_of(q), k_lengths = lengths_of(problem.k);
  const Values greatest_values = greatest_of_rows(v);

  threads.parallel_for(q.batch * q.heads * q.rows, [&](std::int64_t item, int) {
    const std::int64_t row = item % q.rows;
    const std::int64_t h = item / q.rows % q.heads;
    const std::int64_t b = item / q.rows / q.heads;
    const std::int64_t h_kv = h / group;
    const std::int64_t k_batch = problem.k.batch == 1 ? 0 : b, v_batch = v.batch == 1 ? 0 : b;
    ScoreRow line(v.rows);
    scores.row(b, h, row, line.scores);
    snippets(b, h, row, line.scores.data(), line.modified.data(), line.keep.data());
    bound_scores(line.modified);
    draw_factors(problem, b, h, row, line);
    const ScoreSizes of_scores = score_sizes(line, k_lengths.row(k_batch, h_kv, 0));
    sizes.scores.at(b, h, row, 0) = of_scores.score;
    sizes.products.at(b, h, row, 0) =
        of_scores.product * q_lengths.at(b, h, row, 0) * std::fabs(problem.scale);
    sizes.values.at(b, h, row, 0) = value_size(line, greatest_values.row(v_batch, h_kv, 0));
    const double sink = problem.sink ? problem.sink->at(b, h, row, 0) : -kInfinity;
    const ResultRow result{
        .out = reference.values.out.row(b, h, row),
        .lost = sizes.lost.row(b, h, row),
        .weights = problem.wants_weights ? reference.values.weights.row(b, h, row) : nullptr};
    reference.values.lse.at(b, h, row, 0) =
        softmax_times_values(line, v, v_batch, h_kv, sink, result);
    reference.values.max_scores.at(b, h, row, 0) = max_score(line);
    if (problem.out_scales.empty()) return;
    const double out_scale = problem.out_scales[static_cast<std::size_t>(h)];
    for (std::int64_t i = 0; i < v.width; ++i) {
      result.out[i] /= out_scale;
      result.lost[i] /= std::fabs(out_scale);
    }
    sizes.values.at(b, h, row, 0) /= std::fabs(out_scale);
  });
  return reference;
}

}  // namespace tilewright::verify
