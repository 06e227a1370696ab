#include "fuzz/judge_by_samples.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

Order inverse(const Order& order) {
  Order places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    places[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  return places;
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

// Naive, sample by sample. The first is without tricks.
class Samples {
 public:
  Samples(const CaseParts& parts, const Rule& rule, Executor& threads)
      : parts_(parts), rule_(rule), threads_(threads) {}

  const AttentionValues& operator[](std::uint64_t sample) {
    while (made_.size() <= sample) made_.push_back(make(made_.size()));
    return made_[sample];
  }

 private:
  AttentionValues make(std::uint64_t sample) const {
    return parts_.whole(
        [&](const CaseParts::Part& part, const DenseProblem& dense) {
          return sample == 0 ? naive(part.interpretations.in_float(), dense)
                             : another(sample, part, dense);
        },
        rule_.products);
  }

  AttentionValues naive(const RowSnippets<float>& snippets, const DenseProblem& dense) const {
    return naive_attention(dense, snippets, rule_.dtype, rule_.out_dtype, threads_, rule_.products);
  }

  AttentionValues another(std::uint64_t sample, const CaseParts::Part& part,
                          const DenseProblem& dense) const {
    Random random(sample, "yardstick");
    const Order keys = shuffled(dense.k.rows, random);
    const Order dims = shuffled(dense.k.width, random);
    DenseProblem problem{.q = reordered(dense.q, nullptr, &dims),
                         .k = reordered(dense.k, &keys, &dims),
                         .v = reordered(dense.v, &keys, nullptr),
                         .scale = dense.scale,
                         .sink = dense.sink,
                         .out_scales = dense.out_scales,
                         .dropout = dense.dropout,
                         .wants_weights = dense.wants_weights};
    if (problem.dropout) problem.dropout->columns = keys;
    AttentionValues values = naive(
        reordered(part.interpretations.in_float({.factor = 1, .seed = sample}), keys), problem);
    if (dense.wants_weights) {
      const Order columns = inverse(keys);
      values.weights = reordered(values.weights, nullptr, &columns);
    }
    return values;
  }

  const CaseParts& parts_;
  const Rule& rule_;
  Executor& threads_;
  std::deque<AttentionValues> made_;
};

template <typename Judge>
Verdict judge_by(const Judge& judge_sample) {
  Verdict verdict = judge_sample(std::uint64_t{0});
  for (std::uint64_t sample = 1; sample <= kSamples && !verdict.ok; ++sample) {
    Verdict next = judge_sample(sample);
    if (next.ok) verdict = std::move(next);
  }
  return verdict;
}

}  // namespace

Verdict judge_by_samples(const AttentionValues& got, const Reference& reference,
                         const CaseParts& parts, const Rule& rule, Executor& threads) {
  Samples samples(parts, rule, threads);
  return judge_by(
      [&](std::uint64_t sample) { return judge(got, reference.values, samples[sample], rule); });
}

std::string judge_sequences_alone(const AttentionValues& got, const Reference& reference,
                                  const CaseParts& parts, const Rule& rule, Executor& threads) {
  Samples samples(parts, rule, threads);
  for (const CaseParts::Part& part : parts.parts()) {
    if (part.piece.score_rows() == 0) continue;
    Rule of_part = rule;
    of_part.sizes = take_rows(rule.sizes, part.piece);
    of_part.bound_factor = kBoundFactorOfSequence;
    const AttentionValues mine = CaseParts::part_of(got, part);
    const AttentionValues wanted = CaseParts::part_of(reference.values, part);
    const Verdict verdict = judge_by([&](std::uint64_t sample) {
      return judge(mine, wanted, CaseParts::part_of(samples[sample], part), of_part);
    });
    if (verdict.ok) continue;
    return fmt::format("sequence {} alone: {}", part.piece.b, fmt::join(verdict.reasons, "; "));
  }
  return {};
}

}  // namespace tilewright::verify::fuzz
