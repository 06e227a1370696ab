#include "fuzz/coverage.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace tilewright::verify::fuzz {
namespace {

// No case shows a value of the first factor and one of the second. The first value of a factor is
// bit 0, and features.cpp names them.
struct Exclusion {
  Factor first;
  std::uint16_t first_values;
  Factor second;
  std::uint16_t second_values;
};

constexpr std::uint16_t kFirst = 1;
constexpr std::uint16_t kOthers = 0xfffe;

constexpr std::uint16_t kPackedLayout = 1 << 2, kDense = 1 << 0 | 1 << 1;  // layouts
constexpr std::uint16_t kMany = 1 << 2;                                    // sequences
constexpr std::uint16_t kWeights = 1 << 3;                                 // an output
constexpr std::uint16_t kNamed = 1 << 2;                                   // gradients
constexpr std::uint16_t kOfBatch = 1 << 1;                                 // shared k and v
constexpr std::uint16_t kOfMasks = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5, kOfPlans = 1 << 6 | 1 << 7;

constexpr auto kExclusions = std::to_array<Exclusion>({
    {Factor::mask_mod, kFirst, Factor::mask_scope, kOthers},
    {Factor::mask_mod, kOthers, Factor::mask_scope, kFirst},
    {Factor::mask_mod, kFirst, Factor::contents, 1 << 2},
    {Factor::mask_scope, kFirst, Factor::contents, 1 << 2},
    // What is kept must not depend on rounding, so a mask calls nothing that rounds.
    {Factor::score_mod, kFirst, Factor::functions, 1 << 2 | 1 << 3},
    {Factor::buffer, kFirst, Factor::rank, kOthers},
    {Factor::buffer, kOthers, Factor::rank, kFirst},
    {Factor::buffer, kFirst, Factor::bounds, kOthers},
    {Factor::buffer, kOthers, Factor::bounds, kFirst},
    {Factor::rank, kFirst, Factor::bounds, kOthers},
    {Factor::rank, kOthers, Factor::bounds, kFirst},
    {Factor::buffer, kFirst, Factor::buffer_sharing, kOthers},
    {Factor::rank, kFirst, Factor::buffer_sharing, kOthers},
    {Factor::bounds, kFirst, Factor::buffer_sharing, kOthers},
    {Factor::head_dim, 1 << 1, Factor::v_head_dim, 1 << 1},
    {Factor::head_dim, 1 << 6, Factor::dtype, 1 << 3},  // rows of one byte are whole chunks
    {Factor::head_dim, 1 << 6, Factor::mixed, 1 << 3},
    {Factor::head_dim, 1 << 6, Factor::tactic, 1 << 3},
    {Factor::batch, kFirst, Factor::kv_sharing, 1 << 1},
    {Factor::heads, 1 << 0 | 1 << 3, Factor::kv_sharing, 1 << 2},
    {Factor::dtype, 1 << 3, Factor::mixed, 1 << 1 | 1 << 3},  // k and v are of f8e4m3 too
    // Products of f32.
    {Factor::products, kOthers, Factor::dtype, kOthers},
    // The Hopper kernel: 16 bits of one type, or k and v of one byte, aligned tensors, its own
    // machine.
    {Factor::tactic, 1 << 3, Factor::dtype, 1 << 0},
    {Factor::tactic, 1 << 3, Factor::mixed, 1 << 1},
    {Factor::tactic, 1 << 3, Factor::products, kOthers},
    {Factor::tactic, 1 << 3, Factor::kernel, 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | kOfPlans},
    {Factor::tactic, 1 << 3, Factor::target, 0x3b},
    {Factor::tactic, 1 << 3, Factor::placement, 1 << 2},
    {Factor::tactic, 1 << 3, Factor::dropout, kOthers},
    {Factor::tactic, 1 << 2 | 1 << 3, Factor::target, 1 << 5},
    {Factor::tactic, 1 << 1, Factor::target, 0x1f},
    {Factor::mask_mod, kFirst, Factor::kernel, 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7},
    {Factor::mask_scope, kFirst, Factor::kernel, 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7},
    // Tiles of at least 64 rows and columns divide no small block; such a spec is never masked.
    {Factor::tactic, 1 << 3, Factor::block, 1 << 1},
    // Packed calls, by what shows that a call is one. They have no weights.
    {Factor::layout, kPackedLayout, Factor::outputs, kWeights},
    {Factor::tokens, kOthers, Factor::outputs, kWeights},
    {Factor::batch, kMany, Factor::outputs, kWeights},
    {Factor::sequences, kOthers, Factor::outputs, kWeights},
    {Factor::kv_rows, kOthers, Factor::outputs, kWeights},
    {Factor::kernel, kOfPlans, Factor::outputs, kWeights},
    {Factor::layout, kDense, Factor::tokens, kOthers},
    {Factor::layout, kDense, Factor::batch, kMany},
    {Factor::layout, kDense, Factor::sequences, kOthers},
    {Factor::layout, kDense, Factor::kv_rows, kOthers},
    {Factor::layout, kDense, Factor::kernel, kOfPlans},
    {Factor::layout, kPackedLayout, Factor::kv_layout, kOthers},
    {Factor::layout, kPackedLayout, Factor::kv_sharing, kOfBatch},
    {Factor::layout, kPackedLayout, Factor::sequences, kFirst},
    {Factor::layout, kPackedLayout, Factor::kv_rows, kFirst},
    {Factor::layout, kPackedLayout, Factor::kernel, kOfMasks},
    {Factor::kv_layout, kOthers, Factor::tokens, kOthers},
    {Factor::kv_layout, kOthers, Factor::batch, kMany},
    {Factor::kv_layout, kOthers, Factor::sequences, kOthers},
    {Factor::kv_layout, kOthers, Factor::kv_rows, kOthers},
    {Factor::kv_layout, kOthers, Factor::kernel, kOfPlans},
    {Factor::tokens, kOthers, Factor::kv_sharing, kOfBatch},
    {Factor::tokens, kOthers, Factor::sequences, kFirst},
    {Factor::tokens, kOthers, Factor::kv_rows, kFirst},
    {Factor::tokens, kOthers, Factor::kernel, kOfMasks},
    {Factor::batch, kMany, Factor::kv_sharing, kOfBatch},
    {Factor::batch, kMany, Factor::sequences, kFirst},
    {Factor::batch, kMany, Factor::kv_rows, kFirst},
    {Factor::kv_sharing, kOfBatch, Factor::sequences, kOthers},
    {Factor::kv_sharing, kOfBatch, Factor::kv_rows, kOthers},
    {Factor::sequences, kFirst, Factor::kv_rows, kOthers},
    {Factor::sequences, kOthers, Factor::kv_rows, kFirst},
    // Gradients, or a tensor of theirs: no byte in q, k and v, IEEE products, lse, and in tiles
    // that are visited no NaN.
    {Factor::gradients, kOthers, Factor::dtype, 1 << 3},
    {Factor::gradients, kOthers, Factor::mixed, 1 << 3},
    {Factor::gradients, kOthers, Factor::products, kOthers},
    {Factor::gradients, kOthers, Factor::outputs, kFirst},
    {Factor::gradients, kOthers, Factor::contents, 1 << 2},
    {Factor::gradients, kNamed, Factor::score_mod, kFirst},
    // A batch of one sequence has rows and columns, and no order.
    {Factor::batch, kFirst, Factor::sequences, 0x3c},
    {Factor::batch, kFirst, Factor::kv_rows, 1 << 3 | 1 << 4},
});

bool excludes(const Exclusion& exclusion, Feature a, Feature b) {
  return exclusion.first == a.factor && exclusion.second == b.factor &&
         (exclusion.first_values >> a.value & 1) != 0 &&
         (exclusion.second_values >> b.value & 1) != 0;
}

template <typename Body>
void for_each_feature(const Features& features, const Body& body) {
  for (std::size_t f = 0; f < kFactors; ++f) {
    for (int value = 0; features[f] >> value != 0; ++value) {
      if ((features[f] >> value & 1) != 0) body(Feature{static_cast<Factor>(f), value});
    }
  }
}

template <typename Body>
void for_each_pair(const Features& features, const Body& body) {
  for_each_feature(features, [&](Feature a) {
    for_each_feature(features, [&](Feature b) {
      if (a.factor < b.factor) body(a, b);
    });
  });
}

bool fits(const Features& fixed, Feature feature) {
  const std::uint16_t values = bits(fixed, feature.factor);
  return values == 0 || (values >> feature.value & 1) != 0;
}

}  // namespace

bool is_feature(Feature feature) {
  switch (feature.factor) {
    case Factor::functions:
    case Factor::choice:
    case Factor::local:
    case Factor::integers:
    case Factor::tokens:
      return feature.value != 0;
    default:
      return true;
  }
}

std::string FeaturePair::describe() const {
  const auto text = [](Feature feature) {
    const FactorNames& names = names_of(feature.factor);
    return fmt::format("{}={}", names.name, names.values[static_cast<std::size_t>(feature.value)]);
  };
  return text(first) + " with " + text(second);
}

bool can_meet(Feature first, Feature second) {
  return std::none_of(kExclusions.begin(), kExclusions.end(), [&](const Exclusion& exclusion) {
    return excludes(exclusion, first, second) || excludes(exclusion, second, first);
  });
}

PairCoverage::PairCoverage(const Features& allowed)
    : allowed_(allowed), shown_(kFactors * kFactors * kValues * kValues, true) {
  for_each_pair(allowed, [&](Feature a, Feature b) {
    if (!can_meet(a, b) || !is_feature(a) || !is_feature(b)) return;
    pairs_.push_back({a, b});
    shown_[index(a, b)] = false;
  });
}

std::size_t PairCoverage::index(Feature a, Feature b) {
  const auto f = static_cast<std::size_t>(a.factor);
  const auto g = static_cast<std::size_t>(b.factor);
  return ((f * kFactors + g) * kValues + static_cast<std::size_t>(a.value)) * kValues +
         static_cast<std::size_t>(b.value);
}

void PairCoverage::add(const Features& features) {
  for_each_pair(features, [&](Feature a, Feature b) {
    if (shown_[index(a, b)]) return;
    shown_[index(a, b)] = true;
    ++covered_;
  });
}

std::int64_t PairCoverage::gain(const Features& features) const {
  std::int64_t gain = 0;
  for_each_pair(features, [&](Feature a, Feature b) { gain += !shown_[index(a, b)]; });
  return gain;
}

std::optional<FeaturePair> PairCoverage::missing(Random& random, const Features& fixed) const {
  std::vector<FeaturePair> found;
  for (const FeaturePair& pair : pairs_) {
    if (!shown_[index(pair.first, pair.second)] && fits(fixed, pair.first) &&
        fits(fixed, pair.second)) {
      found.push_back(pair);
    }
  }
  if (found.empty()) return std::nullopt;
  const auto last = static_cast<std::int64_t>(found.size()) - 1;
  return found[static_cast<std::size_t>(random.integer(0, last))];
}

std::vector<FeaturePair> PairCoverage::all_missing() const {
  std::vector<FeaturePair> found;
  for (const FeaturePair& pair : pairs_) {
    if (!shown_[index(pair.first, pair.second)]) found.push_back(pair);
  }
  return found;
}

}  // namespace tilewright::verify::fuzz
