#include <nanobind/nanobind.h>

#include "attention.hpp"
#include "errors.hpp"
#include "jax_ffi.hpp"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(
      false);  // objects may outlive the interpreter; the library prints nothing
  module.doc() = "Tilewright's C++ library. The package tilewright is the interface for programs.";
  tilewright::py::declare_errors(module);
  tilewright::py::declare_attention(module);
  tilewright::py::declare_tools(module);
  tilewright::py::declare_context_parallel(module);
  tilewright::py::declare_jax(module);
}
