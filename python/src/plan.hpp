#pragma once

#include <vector>

#include <nanobind/nanobind.h>

#include "runtime/api/plan.hpp"

namespace tilewright::py {

/// A plan, the arrays that it reads, and on a CPU its memory.
struct PlannedCalls {
  Plan plan;
  std::vector<nanobind::object> arrays;
  Tensor memory;
};

}  // namespace tilewright::py
