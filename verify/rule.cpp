#include "verify/rule.hpp"

#include "verify/fast_math.hpp"

namespace tilewright::verify {

Rule rule_for(const Attention& attention, double max_abs_score) {
  const Spec& spec = attention.spec();
  Rule rule{.dtype = product_dtype(attention), .out_dtype = spec.output_dtype()};
  rule.scales_values = !spec.v_scale.empty();
  if (uses_fast_math(spec, attention.device())) rule.fast_math_score = max_abs_score;
  const bool scales_scores = !spec.q_scale.empty() || !spec.k_scale.empty();
  if (rule.dtype == DType::f32 && scales_scores) rule.scaled_score = max_abs_score;
  if (multiplies_tf32(spec, attention.device())) rule.products = F32Products::tf32;
  return rule;
}

}  // namespace tilewright::verify
