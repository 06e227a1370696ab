#include "fuzz/yardstick.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "verify/naive.hpp"
#include "verify/random.hpp"

namespace tilewright::verify::fuzz {
namespace {

constexpr std::uint64_t kSamples = 6;

using Order = std::vector<std::int64_t>;

Order shuffled(std::int64_t count, Random& random) {
  Order order(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  for (std::size_t i = order.size(); i-- > 1;) {
    std::swap(order[i],
              order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i)))]);
  }
  return order;
}

Values reordered(const Values& values, const Order* rows, const Order* columns) {
  Values result = Values::zeros(values.batch, values.heads, values.rows, values.width);
  for (std::int64_t b = 0; b < values.batch; ++b) {
    for (std::int64_t h = 0; h < values.heads; ++h) {
      for (std::int64_t row = 0; row < values.rows; ++row) {
        const std::int64_t from = rows ? (*rows)[static_cast<std::size_t>(row)] : row;
        for (std::int64_t i = 0; i < values.width; ++i) {
          result.at(b, h, row, i) =
              values.at(b, h, from, columns ? (*columns)[static_cast<std::size_t>(i)] : i);
        }
      }
    }
  }
  return result;
}

// Snippets for scores whose columns stand in another order.
RowSnippets<float> reordered(RowSnippets<float> snippets, const Order& keys) {
  return [snippets = std::move(snippets), &keys](std::int64_t b, std::int64_t h, std::int64_t row,
                                                 const float* scores, float* modified,
                                                 unsigned char* keep) {
    std::vector<float> before(keys.size());
    std::vector<float> after(keys.size());
    std::vector<unsigned char> kept(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      before[static_cast<std::size_t>(keys[i])] = scores[i];
    }
    snippets(b, h, row, before.data(), after.data(), kept.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      modified[i] = after[static_cast<std::size_t>(keys[i])];
      keep[i] = kept[static_cast<std::size_t>(keys[i])];
    }
  };
}

AttentionValues another_naive(std::uint64_t sample, const DenseProblem& dense,
                              const CaseReadings& readings, const Spec& spec, ThreadPool& threads) {
  Random random(sample, "yardstick");
  const Order keys = shuffled(dense.k.rows, random);
  const Order dims = shuffled(dense.k.width, random);
  const DenseProblem problem{.q = reordered(dense.q, nullptr, &dims),
                             .k = reordered(dense.k, &keys, &dims),
                             .v = reordered(dense.v, &keys, nullptr),
                             .scale = dense.scale};
  const RowSnippets<float> snippets =
      reordered(readings.in_float({.factor = 1, .seed = sample}), keys);
  return naive_attention(problem, snippets, spec.dtype, spec.output_dtype(), threads);
}

}  // namespace

Verdict judge_by_samples(const AttentionValues& got, const Reference& reference,
                         const DenseProblem& dense, const CaseReadings& readings, const Spec& spec,
                         const Rule& rule, ThreadPool& threads) {
  const AttentionValues naive =
      naive_attention(dense, readings.in_float(), spec.dtype, spec.output_dtype(), threads);
  Verdict verdict = judge(got, reference.values, naive, rule);
  for (std::uint64_t sample = 1; sample <= kSamples && !verdict.ok; ++sample) {
    Verdict next =
        judge(got, reference.values, another_naive(sample, dense, readings, spec, threads), rule);
    if (next.ok) verdict = std::move(next);
  }
  return verdict;
}

}  // namespace tilewright::verify::fuzz
