#include "fuzz/plan.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilewright::verify::fuzz {
namespace {

constexpr int kTries = 200;

bool is_allowed(const Features& allowed, Feature feature) {
  return (bits(allowed, feature.factor) >> feature.value & 1) != 0;
}

bool fits(const Plan& plan, Feature feature) {
  for (std::size_t f = 0; f < kFactors; ++f) {
    const auto factor = static_cast<Factor>(f);
    if (factor == feature.factor || plan[f] < 0) continue;
    if (!can_meet({factor, plan[f]}, feature)) return false;
  }
  return true;
}

bool needs_a_snippet(const Plan& plan) {
  for (const Factor factor : {Factor::buffer, Factor::scalar, Factor::functions, Factor::choice,
                              Factor::local, Factor::integers, Factor::tokens}) {
    if (at(plan, factor) > 0) return true;
  }
  return false;
}

// Whether plans may have a score_mod or a mask_mod. Of a user's spec with neither, a scale, the
// sink or dropout reads buffers and scalars.
bool may_have_a_snippet(const Features& allowed) {
  constexpr std::uint16_t kNone = 1 << 0;
  return allowed[static_cast<std::size_t>(Factor::score_mod)] != kNone ||
         allowed[static_cast<std::size_t>(Factor::mask_mod)] != kNone;
}

// What three factors decide together: what stands in snippets needs one, and a local variable or
// an if needs one with statements.
bool is_consistent(const Plan& plan, const Features& allowed) {
  const int score = at(plan, Factor::score_mod);
  const int mask = at(plan, Factor::mask_mod);
  const bool has_none = score == 0 && mask == 0;
  if (has_none && may_have_a_snippet(allowed) && needs_a_snippet(plan)) return false;
  const bool needs_a_body = at(plan, Factor::local) > 0 || at(plan, Factor::choice) == 3;
  if (needs_a_body && score != 2 && mask != 2) return false;
  constexpr int kFloatBuffers = 1 << 1 | 1 << 2 | 1 << 7;
  const bool has_floats =
      (kFloatBuffers >> at(plan, Factor::buffer) & 1) != 0 || at(plan, Factor::scalar) == 1;
  if (at(plan, Factor::gradients) == 2 && !has_floats) return false;
  const bool shares_nothing = at(plan, Factor::batch) == 0 && at(plan, Factor::heads) == 0;
  return !(at(plan, Factor::buffer_sharing) == 1 && shares_nothing);
}

// Factors in a random order, so that none always gives way to the same others; but the layout
// first, or most cases were packed, which more values speak of.
std::vector<std::size_t> shuffled_factors(Random& random) {
  std::vector<std::size_t> order(kFactors);
  for (std::size_t f = 0; f < kFactors; ++f) order[f] = f;
  for (std::size_t f = kFactors; f-- > 1;) {
    const auto other = static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(f)));
    std::swap(order[f], order[other]);
  }
  const auto layout =
      std::find(order.begin(), order.end(), static_cast<std::size_t>(Factor::layout));
  std::rotate(order.begin(), layout, layout + 1);
  return order;
}

// Of gradients, which take kernels and references of their own, and of dropout, of which few
// relations say anything: four plans of five that may.
bool asks_for_none(const std::vector<int>& values, Random& random) {
  return values.front() == 0 && random.integer(0, 4) != 0;
}

std::optional<Plan> try_plan(const Features& allowed, Random& random,
                             const std::optional<FeaturePair>& wanted) {
  Plan plan;
  plan.fill(-1);
  if (wanted) {
    at(plan, wanted->first.factor) = wanted->first.value;
    at(plan, wanted->second.factor) = wanted->second.value;
  }
  for (const std::size_t f : shuffled_factors(random)) {
    if (plan[f] >= 0 || allowed[f] == 0) continue;
    std::vector<int> values;
    for (int value = 0; allowed[f] >> value != 0; ++value) {
      const Feature feature{static_cast<Factor>(f), value};
      if (is_allowed(allowed, feature) && fits(plan, feature)) values.push_back(value);
    }
    if (values.empty()) return std::nullopt;
    const auto factor = static_cast<Factor>(f);
    const bool is_seldom = factor == Factor::gradients || factor == Factor::dropout;
    if (is_seldom && asks_for_none(values, random)) values = {0};
    plan[f] = values[static_cast<std::size_t>(
        random.integer(0, static_cast<std::int64_t>(values.size()) - 1))];
  }
  if (!is_consistent(plan, allowed)) return std::nullopt;
  return plan;
}

}  // namespace

std::optional<Plan> random_plan(const Features& allowed, Random& random,
                                const std::optional<FeaturePair>& wanted) {
  for (int i = 0; i < kTries; ++i) {
    if (const auto plan = try_plan(allowed, random, wanted)) return plan;
  }
  return std::nullopt;
}

}  // namespace tilewright::verify::fuzz
