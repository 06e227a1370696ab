#pragma once

#include "brackets.hpp"

namespace tilewright {

/// Refuses what declares a function or names a function's type: `float erff(float);`,
/// `using F = float(float);`, `decltype(exp) f;`. A kernel would be left with a symbol that nothing
/// defines. Pointers to functions, `float (*f)(float) = ...`, are accepted.
/// @throws Error with code snippet at the name
void refuse_function_declarations(const SnippetBrackets& snippet);

}  // namespace tilewright
