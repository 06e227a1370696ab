#include "generator/spec/spec.hpp"

#include <cmath>

namespace tilewright {

double Spec::softmax_scale() const {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::string_view to_string(Layout layout) {
  switch (layout) {
    case Layout::bhsd:
      return "bhsd";
    case Layout::bshd:
      return "bshd";
    case Layout::packed:
      return "packed";
    case Layout::paged:
      return "paged";
  }
  return "";
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
    case NamedDim::total_q:
      return "total_q";
    case NamedDim::total_kv:
      return "total_kv";
  }
  return "";
}

}  // namespace tilewright
