#pragma once

#include "abi/cpu.hpp"
#include "cpu/inline.hpp"

// Where a head's rows begin in a tensor, and whether its elements are floats.

namespace tw_kernel {

using tilewright::abi::ForwardArguments;
using tilewright::abi::SnippetArguments;
using tilewright::abi::TensorArgument;

template <typename Element>
TW_INLINE Element* head_of(const TensorArgument& tensor, int b, int h) {
  return static_cast<Element*>(tensor.data) + b * tensor.batch_stride + h * tensor.head_stride;
}

TW_INLINE bool is_float(const float*) { return true; }
template <typename Element>
TW_INLINE bool is_float(const Element*) { return false; }

}  // namespace tw_kernel
