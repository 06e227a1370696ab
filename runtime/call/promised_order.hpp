#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../../generator/render/promised_buffers.hpp"
#include "../../templates/abi/plan.hpp"
#include "../api/bindings.hpp"
#include "../api/plan.hpp"
#include "../api/tensor.hpp"

namespace tilewright {

/// Elements of a tensor on the host that are less than the one before in the last dimension, or not
/// comparable with it (NaN). Bools are compared as truths.
/// @param buffer becomes part of UnsortedElements::first
abi::UnsortedElements find_unsorted(const TensorView& tensor, std::size_t buffer = 0);

/// "doc(0, 17) is 2 after 3" of the first such element of a tensor on the host.
std::optional<std::string> describe_unsorted(const std::string& name, const TensorView& tensor);

/// The buffers of a plan that its spec promises to be sorted.
class PromisedOrder {
 public:
  PromisedOrder() = default;
  explicit PromisedOrder(std::vector<PromisedBuffer> buffers) : buffers_(std::move(buffers)) {}

  bool is_empty() const { return buffers_.empty(); }

  /// Takes the tensors of the build at hand.
  void bind(const Bindings& bindings);

  /// What find_unsorted finds in all of them, which lie on the host.
  abi::UnsortedElements find() const;

  /// What a plan's header says of the first element.
  /// @throws Error with code usage where the header names a buffer that the plan has not
  PlanReport::Value value_of(const abi::UnsortedElements& unsorted) const;

 private:
  std::vector<PromisedBuffer> buffers_;
  std::vector<TensorView> tensors_;  // as many
};

}  // namespace tilewright
