#pragma once

#include <nanobind/nanobind.h>

namespace tilewright::py {

/// Exceptions of the library become tilewright.Error, whose report `report()` writes.
void declare_errors(nanobind::module_& module);

}  // namespace tilewright::py
