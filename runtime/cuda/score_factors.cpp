#include "runtime/cuda/score_factors.hpp"

#include <cmath>
#include <iterator>

namespace tilewright::cuda {

ScoreFactors::ScoreFactors(const SpecFacts& facts)
    : of_score_(product_of(facts.spec, facts.reduction.of_score)),
      of_result_(product_of(facts.spec, facts.reduction.of_result)),
      greatest_result_(facts.greatest_result_factor()) {}

ScoreFactors::Product ScoreFactors::product_of(const Spec& spec, const snippet::Factor& factor) {
  Product product{.literal = factor.literal};
  for (const auto& [name, divides] : factor.scalars) {
    const auto place = std::distance(spec.scalars.begin(), spec.scalars.find(name));
    product.powers.push_back({static_cast<std::size_t>(place), divides});
  }
  return product;
}

double ScoreFactors::Product::of(const std::vector<double>& scalars) const {
  double product = 1;
  for (const Power& power : powers) {
    const double value = static_cast<float>(scalars.at(power.scalar));
    product = power.divides ? product / value : product * value;
  }
  return product;
}

// A negative factor of the result would turn the order of scores round.
FoldedFactors ScoreFactors::fold(const std::vector<double>& scalars) const {
  if (of_score_.powers.empty() && of_result_.powers.empty()) return {};
  const double of_score = of_score_.of(scalars), of_result = of_result_.of(scalars);
  const double score_size = std::fabs(of_score * of_score_.literal);
  const double result_size = of_result * of_result_.literal;
  const bool fits_score = of_score == 0 || (score_size >= snippet::kLeastFactor &&
                                            score_size <= snippet::kGreatestFactor);
  const bool fits_result = result_size >= snippet::kLeastFactor && result_size <= greatest_result_;
  return {.of_score = static_cast<float>(of_score),
          .of_result = static_cast<float>(of_result),
          .fit = fits_score && fits_result};
}

}  // namespace tilewright::cuda
