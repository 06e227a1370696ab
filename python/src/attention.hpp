#pragma once

#include <vector>

#include <nanobind/nanobind.h>

#include "runtime/api/attention.hpp"

namespace tilewright::py {

/// Bindings, and the arrays that they view.
struct BoundArrays {
  Bindings bindings;
  std::vector<nanobind::object> arrays;
};

void declare_attention(nanobind::module_& module);
void declare_masks(nanobind::class_<Attention>& attention, nanobind::module_& module);
void declare_plans(nanobind::class_<Attention>& attention, nanobind::module_& module);
void declare_backward(nanobind::class_<Attention>& attention);
/// merge, append and quantise.
void declare_rows(nanobind::class_<Attention>& attention);
void declare_tools(nanobind::module_& module);
void declare_context_parallel(nanobind::module_& module);

inline Stream stream_of(std::uintptr_t address) {
  return reinterpret_cast<Stream>(address);
}

inline const Bindings& bindings_of(const BoundArrays* bound) {
  static const Bindings none;
  return bound ? bound->bindings : none;
}

}  // namespace tilewright::py
