#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include "runtime/api/tensor.hpp"

namespace tilewright::py {

/// A tensor, and the GPU that it lies on; -1: the host.
struct Exchanged {
  TensorView view;
  int gpu = -1;
};

/// A view by DLPack's table of C functions (`__dlpack_c_exchange_api__`), which newer versions of
/// torch have: one call in place of a dozen attributes. None: the type has no table, or the array
/// is of a kind or dtype that calls do not take. Sets no Python error.
std::optional<Exchanged> exchange(nanobind::handle array);

}  // namespace tilewright::py
