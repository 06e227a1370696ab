#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../runtime/api/tensor.hpp"
#include "../templates/abi/cpu.hpp"

namespace tilewright::verify {

/// Where the gradients of buffers and scalars lie, one after another.
class GradientCells {
 public:
  /// @param name     of the buffer or scalar
  /// @param gradient whose extents count
  void add(const std::string& name, const TensorView& gradient);

  const std::vector<abi::GradientArgument>& arguments() const { return arguments_; }
  std::int64_t count() const { return count_; }
  /// Of all cells those of one buffer or scalar.
  std::vector<double> of(const std::string& name, const std::vector<double>& all) const;

 private:
  std::vector<abi::GradientArgument> arguments_ = {};
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> places_ = {};  // first, count
  std::int64_t count_ = 0;
};

}  // namespace tilewright::verify
