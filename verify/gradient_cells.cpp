#include "verify/gradient_cells.hpp"

namespace tilewright::verify {

void GradientCells::add(const std::string& name, const TensorView& gradient) {
  abi::GradientArgument argument{.first = count_, .size = {1, 1, 1, 1, 1}, .stride = {}};
  std::int64_t stride = 1;
  for (std::size_t d = static_cast<std::size_t>(gradient.rank); d-- > 0;) {
    argument.size[d] = gradient.shape[d];
    argument.stride[d] = gradient.shape[d] == 1 ? 0 : stride;
    stride *= gradient.shape[d];
  }
  arguments_.push_back(argument);
  places_[name] = {count_, stride};
  count_ += stride;
}

std::vector<double> GradientCells::of(const std::string& name,
                                      const std::vector<double>& all) const {
  const auto [first, count] = places_.at(name);
  return {all.begin() + first, all.begin() + first + count};
}

}  // namespace tilewright::verify
