#pragma once

#include <cstddef>
#include <vector>

#include "../../generator/snippet/spec_facts.hpp"

namespace tilewright::cuda {

/// What the scalars of a call make of score_mod's factors (snippet::ScoreReduction).
struct FoldedFactors {
  float of_score = 1.0f;
  float of_result = 1.0f;
  bool fit = true;  ///< Hopper's kernels can take them; the others evaluate score_mod as written
};

/// The scalars among score_mod's factors, which Hopper's kernels leave to the launch: `cap` in
/// `cap * tanh(score / cap)`.
class ScoreFactors {
 public:
  explicit ScoreFactors(const SpecFacts& facts);

  /// @param scalars  of a call, in the order of their names
  FoldedFactors fold(const std::vector<double>& scalars) const;

 private:
  struct Power {
    std::size_t scalar;
    bool divides;
  };
  struct Product {
    double literal;  ///< which the kernel has
    std::vector<Power> powers = {};

    double of(const std::vector<double>& scalars) const;  ///< without the literal
  };

  static Product product_of(const Spec& spec, const snippet::Factor& factor);

  Product of_score_;
  Product of_result_;
  double greatest_result_;
};

}  // namespace tilewright::cuda
