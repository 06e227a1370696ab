#pragma once

#include <functional>
#include <map>
#include <string>

#include "tree.hpp"

namespace tilewright::snippet {

/// Calls `visit` for a node and all nodes below it, operands after their operation.
void for_each_node(const Expression& expression,
                   const std::function<void(const Expression&)>& visit);
/// The same for all expressions of these statements and of those inside them.
void for_each_node(const std::vector<Statement>& statements,
                   const std::function<void(const Expression&)>& visit);
void for_each_statement(const std::vector<Statement>& statements,
                        const std::function<void(const Statement&)>& visit);

/// Whether the snippet names a variable, a scalar or a buffer.
bool mentions(const SnippetTree& tree, const std::string& name);

/// What locals stand for that never change: each with its value, in which such locals are replaced
/// too. A local that is assigned, or whose value names one that is, is not among them.
using Locals = std::map<std::string, Expression>;
Locals constant_locals(const SnippetTree& tree);

/// The expression with values in the place of locals, and without conversions that change nothing.
Expression inlined(const Expression& expression, const Locals& locals);

/// One form for all spellings of a value: operands of + and * in one order, `a - b` as `a + -b`,
/// signs outside products, whole numbers beside floats as floats. Equal to the last bit.
Expression normal(const Expression& expression);

/// The same snippet as simple as it can be written: locals that are used once, or that rename a
/// value, are inlined, versions of a local that is assigned in sequence are locals, and what is not
/// used is left out.
SnippetTree simplified(const SnippetTree& tree);

}  // namespace tilewright::snippet
