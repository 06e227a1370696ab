#include "jax_ffi.hpp"

namespace tilewright::py {

void declare_jax(nanobind::module_&) {}

}  // namespace tilewright::py
