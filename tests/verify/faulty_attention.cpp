#include "tests/verify/faulty_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/io/float16.hpp"

namespace tilewright::tests {
namespace {

constexpr std::int64_t kTile = 32;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Online softmax of one row.
struct Accumulator {
  explicit Accumulator(std::int64_t width) : sums(static_cast<std::size_t>(width)) {}

  std::vector<float> sums;
  float maximum = -kInfinity;
  float denominator = 0;
};

void add_tile(Accumulator& acc, const std::vector<float>& scores, const double* v, Fault fault) {
  const float maximum = std::max(acc.maximum, *std::max_element(scores.begin(), scores.end()));
  if (maximum == -kInfinity) return;
  const float rescale = fault == Fault::missing_rescale ? 1.0f : std::exp(acc.maximum - maximum);
  acc.maximum = maximum;
  acc.denominator *= rescale;
  for (float& sum : acc.sums) sum *= rescale;
  for (std::size_t column = 0; column < scores.size(); ++column) {
    const float p = std::exp(scores[column] - maximum);
    acc.denominator += p;
    const double* value = v + column * acc.sums.size();
    for (std::size_t i = 0; i < acc.sums.size(); ++i) {
      acc.sums[i] += p * static_cast<float>(value[i]);
      if (fault == Fault::bf16_accumulator) {
        acc.sums[i] = static_cast<float>(round_to(DType::bf16, acc.sums[i]));
      }
    }
  }
}

std::vector<float> tile_scores(const verify::DenseProblem& problem, const double* q, std::int64_t b,
                               std::int64_t h_kv, std::int64_t row, std::int64_t begin,
                               std::int64_t end, Fault fault) {
  const std::int64_t last = row + problem.k.rows - problem.q.rows;
  std::vector<float> scores;
  for (std::int64_t column = begin; column < end; ++column) {
    const double* k = problem.k.row(b, h_kv, column);
    float sum = 0;
    for (std::int64_t i = 0; i < problem.q.width; ++i) {
      sum += static_cast<float>(q[i]) * static_cast<float>(k[i]);
    }
    sum *= static_cast<float>(problem.scale);
    if (fault == Fault::scale_twice) sum *= static_cast<float>(problem.scale);
    const bool lost = fault == Fault::last_column_lost && column == last && last > 0;
    scores.push_back(column <= last && !lost ? sum : -kInfinity);
  }
  return scores;
}

void swap_first_two_heads(verify::Values& values) {
  const std::int64_t size = values.rows * values.width;
  for (std::int64_t b = 0; b < values.batch; ++b) {
    std::swap_ranges(values.row(b, 0, 0), values.row(b, 0, 0) + size, values.row(b, 1, 0));
  }
}

}  // namespace

verify::AttentionValues tiled_attention(const verify::DenseProblem& problem, DType out_dtype,
                                        Fault fault) {
  const verify::Values& q = problem.q;
  const std::int64_t kv_len = problem.k.rows;
  const std::int64_t shift = fault == Fault::kv_off_by_one ? 1 : 0;
  verify::AttentionValues result{
      .out = verify::Values::zeros(q.batch, q.heads, q.rows, problem.v.width),
      .lse = verify::Values::zeros(q.batch, q.heads, q.rows, 1)};
  for (std::int64_t b = 0; b < q.batch; ++b) {
    for (std::int64_t h = 0; h < q.heads; ++h) {
      const std::int64_t h_kv =
          fault == Fault::wrong_kv_head ? h % problem.k.heads : h / (q.heads / problem.k.heads);
      for (std::int64_t row = 0; row < q.rows; ++row) {
        Accumulator acc(problem.v.width);
        for (std::int64_t begin = 0; begin < kv_len; begin += kTile) {
          const std::int64_t end = std::min(begin + kTile, kv_len);
          const std::int64_t v_row = std::min(begin + shift, kv_len - (end - begin));
          add_tile(acc, tile_scores(problem, q.row(b, h, row), b, h_kv, row, begin, end, fault),
                   problem.v.row(b, h_kv, v_row), fault);
        }
        double* out = result.out.row(b, h, row);
        for (std::size_t i = 0; i < acc.sums.size(); ++i) {
          out[i] = round_to(out_dtype, acc.sums[i] / acc.denominator);
        }
        float lse = acc.maximum + std::log(acc.denominator);
        if (fault == Fault::natural_lse_in_log2) lse /= std::log(2.0f);
        result.lse.at(b, h, row, 0) = lse;
      }
    }
  }
  if (fault == Fault::swapped_heads) {
    swap_first_two_heads(result.out);
    swap_first_two_heads(result.lse);
  }
  return result;
}

}  // namespace tilewright::tests
