#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "validate.hpp"

namespace tilewright {

/// Whether the spec's gradients name it.
bool has_gradient(const Spec& spec, std::string_view name);

/// The buffers whose gradients the spec names, then the scalars, each in the order of their names:
/// the order in which kernels take them.
std::vector<std::string> gradient_names(const Spec& spec);

/// Checks the names of a spec's gradients, once its fields and snippets have passed their checks.
/// @param fail  as check_fields has it
void check_gradients(const Spec& spec, const std::function<void(const SpecProblem&)>& fail);

}  // namespace tilewright
