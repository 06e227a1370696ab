#include "generator/spec/spec.hpp"

#include <cmath>

namespace tilewright {

double Spec::softmax_scale() const {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::string_view to_string(Layout layout) {
  return layout == Layout::bhsd ? "bhsd" : "bshd";
}

std::string_view to_string(NamedDim dim) {
  switch (dim) {
    case NamedDim::batch:
      return "batch";
    case NamedDim::num_q_heads:
      return "num_q_heads";
    case NamedDim::num_kv_heads:
      return "num_kv_heads";
    case NamedDim::q_len:
      return "q_len";
    case NamedDim::kv_len:
      return "kv_len";
  }
  return "";
}

}  // namespace tilewright
