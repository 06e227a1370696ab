#include <algorithm>
#include <cmath>
#include <limits>

#include "fuzz/expression_maker.hpp"

namespace tilewright::verify::fuzz {

TrackedNumber ExpressionMaker::number(int depth) {
  if (depth <= 0 || one_in(5)) return number_leaf(depth);
  const TrackedNumber value = composed_number(depth);
  if (value.bound <= kMaxBound && value.slope <= kMaxSlope) return value;
  return number_leaf(depth);
}

TrackedNumber ExpressionMaker::number_leaf(int depth) {
  if (!locals.numbers.empty() && one_in(3)) return one_of(locals.numbers);
  switch (below(8)) {
    case 0:
    case 1:
    case 2:
      return score();
    case 3:
      return literal();
    case 4:
      if (depth > 0) return number_of_integer(depth);
      return literal();
    default:
      return exact_leaf(depth);
  }
}

TrackedNumber ExpressionMaker::composed_number(int depth) {
  switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return sum(number(depth - 1), number(depth - 1));
    case 4:
    case 5:
    case 6:
      return product(number(depth - 1), number(depth - 1));
    case 7:
      return ratio(number(depth - 1), depth);
    case 8:
    case 9:
    case 10:
      return of_function(number(depth - 1));
    case 11: {
      const TrackedNumber a = number(depth - 1), b = number(depth - 1);
      return {apply(one_of({Op::minimum, Op::maximum}), {a.expression, b.expression}),
              std::max(a.bound, b.bound), std::max(a.slope, b.slope), a.exact && b.exact};
    }
    case 12: {
      const TrackedNumber a = number(depth - 1);
      return one_in(2)
                 ? TrackedNumber{apply(Op::absolute, {a.expression}), a.bound, a.slope, a.exact}
                 : TrackedNumber{apply(Op::negate, {a.expression}), a.bound, a.slope, a.exact};
    }
    case 13: {
      const double limit = static_cast<double>(1 + below(40));
      const TrackedNumber a = number(depth - 1);
      return {apply(Op::clamp, {a.expression, floating(-limit), floating(limit)}), limit, a.slope,
              a.exact};
    }
    case 14:
      return chosen(Op::select, depth);
    default:
      return chosen(Op::conditional, depth);
  }
}

// Eighths: the same in float and in double.
TrackedNumber ExpressionMaker::dyadic() {
  const double value = static_cast<double>(between(-12, 12)) / 8;
  return {floating(value), std::fabs(value), 0, true};
}

TrackedNumber ExpressionMaker::literal() {
  const double value = static_cast<double>(between(-150, 150)) / 100;
  return {floating(value), std::fabs(value), 0, false};
}

TrackedNumber ExpressionMaker::floating_read(const std::string& buffer, int depth) {
  return {read_of(buffer, Type::floating, depth), 1.5, 0, true};
}

TrackedNumber ExpressionMaker::exact_leaf(int depth) {
  const std::vector<std::string> names = declared_.buffers(true);
  const auto name = declared_.scalar(DType::f32);
  if (!names.empty() && !one_in(3)) return floating_read(one_of(names), depth);
  if (name && !one_in(4)) return {variable(*name, Type::floating), 2, 0, true};
  return dyadic();
}

TrackedNumber ExpressionMaker::exact_number(int depth) {
  const TrackedNumber a = exact_leaf(depth);
  switch (depth > 0 ? below(8) : 7) {
    case 0:
      return {apply(Op::absolute, {a.expression}), a.bound, 0, true};
    case 1:
      return {apply(Op::negate, {a.expression}), a.bound, 0, true};
    case 2: {
      const TrackedNumber b = exact_leaf(depth);
      return {apply(one_of({Op::minimum, Op::maximum}), {a.expression, b.expression}),
              std::max(a.bound, b.bound), 0, true};
    }
    case 3:
      return {apply(one_of({Op::floor, Op::ceil}), {a.expression}), a.bound + 1, 0, true};
    case 4:
      return one_in(2) ? TrackedNumber{apply(Op::sign, {a.expression}), 1, 0, true}
                       : TrackedNumber{apply(Op::floor_quotient, {a.expression, floating(0.5)}),
                                       2 * a.bound + 1, 0, true};
    default:
      return a;
  }
}

// A small number out of an integer: some are large, and an error of the slope grows with them.
TrackedNumber ExpressionMaker::number_of_integer(int depth) {
  TrackedInteger x = integer_value(depth - 1);
  if (x.bound() > 2 * kMaxIndex) x = remainder(x, 2 * kMaxIndex);
  const double slope =
      std::ldexp(1.0, -static_cast<int>(std::ceil(
                          std::log2(static_cast<double>(std::max<std::int64_t>(x.bound(), 1)))))) *
      static_cast<double>(1 + below(4));
  const Expression factor = floating(one_in(2) ? slope : -slope);
  const Expression product =
      one_in(2) ? apply(Op::multiply, {factor, x.expression})
                : apply(Op::multiply, {apply(Op::to_floating, {x.expression}), factor});
  return {product, slope * static_cast<double>(x.bound()), 0, false};
}

TrackedNumber ExpressionMaker::score() {
  if (kind_ == SnippetKind::mask_mod) return dyadic();
  return {variable("score", Type::floating), kScoreBound, 1, false};
}

TrackedNumber ExpressionMaker::chosen(Op op, int depth) {
  const TrackedNumber a = number(depth - 1), b = number(depth - 1);
  return {apply(op, {truth(depth - 1), a.expression, b.expression}), std::max(a.bound, b.bound),
          std::max(a.slope, b.slope), a.exact && b.exact};
}

TrackedNumber ExpressionMaker::sum(const TrackedNumber& a, const TrackedNumber& b) {
  return {apply(one_of({Op::add, Op::subtract}), {a.expression, b.expression}), a.bound + b.bound,
          a.slope + b.slope, false};
}

TrackedNumber ExpressionMaker::product(const TrackedNumber& a, const TrackedNumber& b) {
  return {apply(Op::multiply, {a.expression, b.expression}), a.bound * b.bound,
          a.bound * b.slope + b.bound * a.slope, false};
}

// By what is at least a half and does not depend on the score.
TrackedNumber ExpressionMaker::ratio(const TrackedNumber& a, int depth) {
  const TrackedNumber b = exact_number(depth - 1);
  const Expression divisor = apply(Op::add, {apply(Op::absolute, {b.expression}), floating(0.5)});
  return {apply(Op::divide, {a.expression, divisor}), 2 * a.bound, 2 * a.slope, false};
}

// Arguments are kept to where the function is defined and not steep.
TrackedNumber ExpressionMaker::of_function(const TrackedNumber& a) {
  const Expression size = apply(Op::absolute, {a.expression});
  switch (below(16)) {
    case 11:
      return {apply(Op::erf, {a.expression}), 1, 1.13 * a.slope, false};
    case 12:
      return {apply(Op::erfc, {a.expression}), 2, 1.13 * a.slope, false};
    case 13:
      return {apply(Op::log1p, {size}), std::log1p(a.bound), a.slope, false};
    case 14:
      return {apply(Op::expm1, {apply(Op::negate, {size})}), 1, a.slope, false};
    case 15: {
      const TrackedNumber b = exact_number(1);
      const double divisor = one_of({0.25, 0.75, -0.5, 3.0});
      return sum(a, {apply(Op::floor_remainder, {b.expression, floating(divisor)}),
                     std::fabs(divisor), 0, false});
    }
    case 0:
    case 1:
      return {apply(Op::tanh, {a.expression}), 1, a.slope, false};
    case 2:
      return {apply(Op::exp, {apply(Op::minimum, {a.expression, floating(1)})}), 2.72,
              2.72 * a.slope, false};
    case 3:
      return {apply(Op::exp, {apply(Op::negate, {size})}), 1, a.slope, false};
    case 4:
      return {apply(Op::exp2, {apply(Op::minimum, {a.expression, floating(1.5)})}), 2.83,
              1.97 * a.slope, false};
    case 5:
      return {apply(Op::log, {apply(Op::add, {size, floating(0.5)})}), std::log(a.bound + 1) + 0.7,
              2 * a.slope, false};
    case 6:
      return {apply(Op::log2, {apply(Op::add, {floating(1), size})}), std::log2(a.bound + 1),
              1.45 * a.slope, false};
    case 7:
      return {apply(Op::sqrt, {apply(Op::add, {size, floating(0.25)})}), std::sqrt(a.bound + 0.25),
              a.slope, false};
    case 8:
      return {apply(Op::rsqrt, {apply(Op::add, {floating(1), size})}), 1, a.slope, false};
    case 9:
      return {apply(one_of({Op::sin, Op::cos}), {a.expression}), 1, a.slope, false};
    default: {
      const TrackedNumber b = exact_number(1);
      return sum(a, {apply(one_of({Op::floor, Op::ceil}), {b.expression}), b.bound + 1, 0, true});
    }
  }
}

Expression ExpressionMaker::minus_infinity() {
  return floating(-std::numeric_limits<double>::infinity());
}

}  // namespace tilewright::verify::fuzz
