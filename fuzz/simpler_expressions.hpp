#pragma once

#include <vector>

#include "expression.hpp"

namespace tilewright::verify::fuzz {

/// Expressions of the same type that are one step simpler: an operand of that type, a literal, or
/// the same with one operand simpler. Literals become 0 and 1; these have none.
std::vector<Expression> simpler_expressions(const Expression& expression);

/// Whether every local variable, parameter and lambda that a tree names is declared where it is
/// named, and its last statement is a result. `original` says which names are local; others are the
/// spec's.
bool uses_only_what_it_declares(const SnippetTree& simpler, const SnippetTree& original);

}  // namespace tilewright::verify::fuzz
