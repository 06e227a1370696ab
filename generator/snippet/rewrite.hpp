#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tree.hpp"

namespace tilewright::snippet {

/// What locals stand for that never change: each with its value, in which such locals are replaced
/// too. `is_wanted` tells which of them, all if it is left out.
using Locals = std::map<std::string, Expression>;
using LocalTest = std::function<bool(const std::string& name, const Expression& value)>;
Locals constant_locals(
    const std::vector<Statement>& statements,
    const LocalTest& is_wanted = [](const auto&...) { return true; });

/// Names that are assigned, and parameters of lambdas.
std::set<std::string> changing_names(const std::vector<Statement>& statements);

/// The expression with values in the place of locals, without conversions that change nothing, and
/// with sums of indices in one form: `kv_idx - q_idx + 100`. Equal to the last bit.
Expression inlined(Expression expression, const Locals& locals);

/// The same snippet as simple as it can be written: locals that are used once, or that rename a
/// value, are inlined, and what is not used is left out.
SnippetTree simplified(SnippetTree tree);

/// `kv_idx - q_idx` or `q_idx - kv_idx`: 1 or -1; 0 for anything else.
int sign_of_difference(const Expression& node);

}  // namespace tilewright::snippet
