#include "generator/spec/spec.hpp"

#include <algorithm>
#include <cmath>

#include "base/ceil_div.hpp"

namespace tilewright {
namespace {

std::int64_t padded_dim(std::int64_t head_dim) {
  constexpr std::int64_t kStep = 8;    // columns that a chunk of 16 bytes of 16-bit elements has
  constexpr std::int64_t kLeast = 16;  // a step of a matrix product
  return std::max(round_up(head_dim, kStep), kLeast);
}

}  // namespace

std::int64_t Spec::tile_head_dim() const {
  return padded_dim(head_dim);
}

std::int64_t Spec::tile_value_dim() const {
  return padded_dim(value_head_dim());
}

std::size_t Spec::scalar_entries() const {
  const auto wide = std::count_if(scalars.begin(), scalars.end(), [](const auto& scalar) {
    return scalar.second.dtype == DType::i64;
  });
  return scalars.size() + static_cast<std::size_t>(wide);
}

double Spec::softmax_scale() const {
  return scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

std::int64_t x_of(DType kv_dtype) {
  return 16 / static_cast<std::int64_t>(size_of(kv_dtype));
}

std::vector<std::string> output_names(const Outputs& outputs) {
  std::vector<std::string> names;
  if (outputs.out) names.emplace_back("out");
  if (outputs.lse) names.emplace_back("lse");
  if (outputs.max_scores) names.emplace_back("max_scores");
  if (outputs.weights) names.emplace_back("weights");
  return names;
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
    case Layout::paged_x:
      return "paged_x";
  }
  return "";
}

std::string_view to_string(F32Products products) {
  return products == F32Products::tf32 ? "tf32" : "ieee";
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
