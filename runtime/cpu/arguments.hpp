#pragma once

#include <vector>

#include "../../templates/abi/cpu.hpp"
#include "../api/bindings.hpp"
#include "../api/block_mask.hpp"
#include "../call/forward_call.hpp"

namespace tilewright::cpu {

/// Buffers and scalars as CPU kernels take them, made once for many calls.
struct BindingArguments {
  std::vector<abi::BufferArgument> buffers;
  std::vector<abi::ScalarArgument> scalars;
};

BindingArguments binding_arguments(const Spec& spec, const std::vector<TensorView>& buffers,
                                   const std::vector<double>& scalars);

/// What every CPU kernel that holds a snippet takes. Points into `bindings`.
abi::SnippetArguments snippet_arguments(const BindingArguments& bindings, const Shape& shape);

abi::TensorArgument tensor_argument(const ResolvedTensor& tensor);

/// The tensor from a row on; one without data stays without.
abi::TensorArgument from_row(abi::TensorArgument tensor, DType dtype, std::int64_t row);

/// A mask's lists by rows or columns of tiles. @param blocks as many as there are lists of a head
abi::BlockMaskArgument lists_argument(const BlockMask& mask, const TileLists& lists,
                                      std::int64_t blocks);

}  // namespace tilewright::cpu
