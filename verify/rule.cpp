#include "verify/rule.hpp"

#include <utility>

#include "verify/fast_math.hpp"

namespace tilewright::verify {

Rule rule_for(const Attention& attention, BoundSizes sizes) {
  const Spec& spec = attention.spec();
  Rule rule{.dtype = product_dtype(attention), .out_dtype = spec.output_dtype()};
  rule.scales_values = !spec.v_scale.empty();
  rule.sizes = std::move(sizes);
  const double typical = typical_score(rule.sizes.scores.data);
  for (double& score : rule.sizes.scores.data) {
    if (score < typical) score = typical;
  }
  rule.fast_functions = uses_fast_math(spec, attention.device());
  const bool scales_scores = !spec.q_scale.empty() || !spec.k_scale.empty();
  rule.scaled_scores = rule.dtype == DType::f32 && scales_scores;
  if (multiplies_tf32(spec, attention.device())) rule.products = F32Products::tf32;
  return rule;
}

}  // namespace tilewright::verify
