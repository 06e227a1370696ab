#pragma once

#include <vector>

#include "../../templates/abi/cpu.hpp"
#include "../api/bindings.hpp"

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

}  // namespace tilewright::cpu
