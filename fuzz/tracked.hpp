#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "expression.hpp"

namespace tilewright::verify::fuzz {

/// An integer expression and the interval that its value lies in.
struct TrackedInteger {
  Expression expression;
  std::int64_t least = 0;
  std::int64_t greatest = 0;

  std::int64_t bound() const { return std::max(std::abs(least), std::abs(greatest)); }
};

/// A floating expression, the greatest magnitude of its value, and how many times faster than the
/// score it changes. The score itself is taken to stay below kScoreBound.
struct TrackedNumber {
  Expression expression;
  double bound = 0;
  double slope = 0;
  bool exact = false;  ///< the same number in float and in double

  bool depends_on_score() const { return slope > 0; }
};

inline constexpr double kScoreBound = 40;

/// Operations with the interval of their results. The caller sees to it that nothing leaves int.
inline TrackedInteger add(const TrackedInteger& a, const TrackedInteger& b) {
  return {apply(Op::add, {a.expression, b.expression}), a.least + b.least, a.greatest + b.greatest};
}

inline TrackedInteger subtract(const TrackedInteger& a, const TrackedInteger& b) {
  return {apply(Op::subtract, {a.expression, b.expression}), a.least - b.greatest,
          a.greatest - b.least};
}

inline TrackedInteger multiply(const TrackedInteger& a, const TrackedInteger& b) {
  const std::int64_t bound = a.bound() * b.bound();
  return {apply(Op::multiply, {a.expression, b.expression}),
          a.least >= 0 && b.least >= 0 ? 0 : -bound, bound};
}

/// C++'s remainder by a positive divisor.
inline TrackedInteger remainder(const TrackedInteger& a, std::int64_t divisor) {
  return {apply(Op::remainder, {a.expression, integer(divisor)}),
          a.least >= 0 ? 0 : -std::min(divisor - 1, a.bound()), std::min(divisor - 1, a.bound())};
}

inline TrackedInteger absolute(const TrackedInteger& a) {
  return {apply(Op::absolute, {a.expression}), 0, a.bound()};
}

inline TrackedInteger clamp(const TrackedInteger& a, std::int64_t least, std::int64_t greatest) {
  return {apply(Op::clamp, {a.expression, integer(least), integer(greatest)}), least, greatest};
}

/// Either one, whichever the condition chooses.
inline TrackedInteger choose(Op op, Expression condition, const TrackedInteger& a,
                             const TrackedInteger& b) {
  return {apply(op, {std::move(condition), a.expression, b.expression}), std::min(a.least, b.least),
          std::max(a.greatest, b.greatest)};
}

}  // namespace tilewright::verify::fuzz
