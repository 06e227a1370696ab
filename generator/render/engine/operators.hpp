#pragma once

#include <string_view>

#include "complaint.hpp"
#include "value.hpp"

namespace tilewright::jinja {

/// `left op right`, for every operator but `and` and `or`. Integers follow Python: // and % round
/// towards minus infinity. A bool is not a number.
/// @param op as it is written in a template
/// @throws Complaint if the types do not fit, the result overflows or the budget is used up
Value apply_operator(std::string_view op, const Value& left, const Value& right, Budget& budget);

}  // namespace tilewright::jinja
