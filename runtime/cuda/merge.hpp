#pragma once

#include <cstddef>

#include "../../templates/abi/merge.hpp"
#include "modules.hpp"

namespace tilewright::cuda {

/// Launches merge.
/// @param call from resolve_merge, with rows
/// @param element_bytes of out
void launch_merge(const Driver& driver, const Kernel& kernel, abi::MergeArguments call,
                  std::size_t element_bytes, Stream stream);

}  // namespace tilewright::cuda
