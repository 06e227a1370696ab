#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::py {

/// The handlers that jax.ffi registers.
void declare_jax(nanobind::module_& module);

}  // namespace tilewright::py
