#include "verify/gradient_cells.hpp"

#include "runtime/cpu/gradient_sums.hpp"

namespace tilewright::verify {

void GradientCells::add(const std::string& name, const TensorView& gradient) {
  arguments_.push_back(cpu::dense_cells(gradient, count_));
  places_[name] = {count_, gradient.numel()};
  count_ += gradient.numel();
}

std::vector<double> GradientCells::of(const std::string& name,
                                      const std::vector<double>& all) const {
  const auto [first, count] = places_.at(name);
  return {all.begin() + first, all.begin() + first + count};
}

}  // namespace tilewright::verify
