#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "tree.hpp"

namespace tilewright::snippet {

/// A floating value with its derivatives by each slot; none stands for 0.
struct Slopes {
  Slopes() = default;
  Slopes(Expression of, std::size_t slots) : value(std::move(of)), by(slots) {}

  Expression by_or_0(std::size_t slot) const { return by[slot] ? *by[slot] : floating(0); }

  Expression value = {};
  std::vector<std::optional<Expression>> by = {};
};

/// The value as the floating type.
Expression as_floating(Expression value);

/// A derivative that may be used more than once: a name that `local` gives it, times the number
/// that multiplies it, which later ones may cancel.
Expression with_name(Expression by, const std::function<Expression(Expression)>& local);

/// Whether an operation's derivative is 0 wherever it has one: floor, ceil, sign, floor_div.
bool has_no_slope(Op op);

/// An operation on values that are variables or literals.
/// @param local  gives a value a name, so that it may be used more than once
Slopes apply_rule(Op op, const std::vector<Slopes>& operands,
                  const std::function<Expression(Expression)>& local);

}  // namespace tilewright::snippet
