#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../verify/check.hpp"
#include "../../verify/random_inputs.hpp"

namespace tilewright::test {

/// A call whose sink is that far above all scores, which are 0 or a little less.
struct SmallWeights {
  SmallWeights(DType dtype, int sink, const std::string& template_name = "")
      : spec{.dtype = dtype,
             .head_dim = 64,
             .score_mod = "min(score, 0)",
             .scalars = {{"level", {.dtype = f32, .default_value = sink}}},
             .outputs = {.lse = true, .weights = true}},
        inputs(verify::random_inputs(
            spec, {.batch = 1, .num_q_heads = 2, .num_kv_heads = 2, .q_len = 20, .kv_len = 150},
            static_cast<std::uint64_t>(sink))) {
    spec.sink = "level";
    if (!template_name.empty()) spec.tactic = TacticSpec{template_name, {}};
  }

  verify::CheckOptions options(const Device& device) const {
    verify::CheckOptions options;
    options.attention.device = device;
    options.check_undefined = false;
    return options;
  }
  verify::Problem problem() const { return inputs.problem(); }

  Spec spec;
  verify::Inputs inputs;
};

/// Why the call is not right on the device; nothing where it is.
inline std::vector<std::string> small_weights_findings(DType dtype, int sink, const Device& device,
                                                       const std::string& template_name = "") {
  const SmallWeights call(dtype, sink, template_name);
  return verify::check(call.spec, call.problem(), call.options(device)).reasons();
}

}  // namespace tilewright::test
