#include "generator/snippet/derivative_rules.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace tilewright::snippet {
namespace {

using MaybeZero = std::optional<Expression>;

// Whether a number may multiply in another order: in the middle of float32's range, so that no
// product overflows or vanishes which would not otherwise.
bool is_usual(double number) {
  constexpr double kGreatest = 0x1p60;
  return std::fabs(number) <= kGreatest && std::fabs(number) >= 1 / kGreatest;
}

bool is_usual_number(const Expression& node) {
  return node.op == Op::floating_literal && is_usual(node.number);
}

// A number, and what it multiplies; without that it is all.
struct Multiple {
  double number = 1;
  std::optional<Expression> rest = {};
};

Multiple multiple_of(Expression value) {
  if (value.op == Op::floating_literal) return {.number = value.number};
  const bool has_number = value.op == Op::multiply && is_usual_number(value.operands[0]);
  if (!has_number) return {.rest = std::move(value)};
  return {.number = value.operands[0].number, .rest = std::move(value.operands[1])};
}

Expression multiplied(const Multiple& of) {
  if (!of.rest) return floating(of.number);
  return of.number == 1 ? *of.rest : apply(Op::multiply, {floating(of.number), *of.rest});
}

// Numbers are multiplied here, and come first: `20 * tanh(score / 20)` has 1 - tanh^2.
Expression product(Expression a, Expression b) {
  const Multiple first = multiple_of(a), second = multiple_of(b);
  Multiple all{.number = first.number * second.number, .rest = first.rest};
  if ((first.rest || second.rest) && !is_usual(all.number)) {
    return apply(Op::multiply, {std::move(a), std::move(b)});
  }
  if (second.rest) {
    all.rest = first.rest ? apply(Op::multiply, {*first.rest, *second.rest}) : *second.rest;
  }
  return multiplied(all);
}

Expression sum(Expression a, Expression b) {
  return apply(Op::add, {std::move(a), std::move(b)});
}

Expression difference(Expression a, Expression b) {
  return apply(Op::subtract, {std::move(a), std::move(b)});
}

Expression quotient(Expression a, Expression b) {
  return apply(Op::divide, {std::move(a), std::move(b)});
}

Expression negated(Expression a) {
  if (a.op == Op::floating_literal) return floating(-a.number);
  return apply(Op::negate, {std::move(a)});
}

Expression call(Op op, Expression a) {
  return apply(op, {std::move(a)});
}

Expression pick(Expression condition, Expression a, Expression b) {
  return apply(Op::conditional, {std::move(condition), std::move(a), std::move(b)});
}

Expression is_nan(const Expression& a) {
  return apply(Op::not_equal, {a, a});
}

Expression either(Expression a, Expression b) {
  return apply(Op::logical_or, {std::move(a), std::move(b)});
}

MaybeZero added(MaybeZero a, MaybeZero b) {
  if (!a) return b;
  return b ? sum(*std::move(a), *std::move(b)) : a;
}

// The derivative of an operation by its operand, and whether it may be infinite: then a value whose
// own derivative is 0 contributes 0 and not 0 * infinity.
struct Partial {
  Expression factor;
  bool may_be_infinite = false;
};

// Of a function of one number u with the value y.
Partial partial_of(Op op, const Expression& u, const Expression& y) {
  constexpr double ln2 = std::numbers::ln2;
  const Expression one = floating(1);
  switch (op) {
    case Op::negate:
      return {floating(-1)};
    case Op::absolute:
      return {call(Op::sign, u)};
    case Op::tanh:
      return {difference(one, product(y, y))};
    case Op::exp:
      return {y};
    case Op::exp2:
      return {product(y, floating(ln2))};
    case Op::expm1:
      return {sum(y, one)};
    case Op::log:
      return {quotient(one, u), true};
    case Op::log2:
      return {quotient(one, product(u, floating(ln2))), true};
    case Op::log1p:
      return {quotient(one, sum(one, u)), true};
    case Op::erf:
    case Op::erfc: {
      const double sign = op == Op::erf ? 1 : -1;
      return {product(floating(sign * 2 * std::numbers::inv_sqrtpi),
                      call(Op::exp, negated(product(u, u))))};
    }
    case Op::sqrt:
      return {quotient(floating(0.5), y), true};
    case Op::rsqrt:
      return {quotient(product(floating(-0.5), y), u), true};
    case Op::sin:
      return {call(Op::cos, u)};
    case Op::cos:
      return {negated(call(Op::sin, u))};
    case Op::tan:
      return {sum(one, product(y, y)), true};
    default:
      throw Error(ErrorCode::internal, "no derivative of " + std::string(to_string(op)));
  }
}

class Rule {
 public:
  Rule(Op op, const std::vector<Slopes>& operands,
       const std::function<Expression(Expression)>& local)
      : op_(op), operands_(operands), local_(local) {}

  Slopes run() {
    std::vector<Expression> values;
    for (const Slopes& operand : operands_) values.push_back(operand.value);
    Slopes result(local_(apply(op_, std::move(values))), operands_[0].by.size());
    prepare(result.value);
    for (std::size_t slot = 0; slot < result.by.size(); ++slot) {
      MaybeZero by = derivative(slot, result.value);
      if (by) result.by[slot] = with_name(*std::move(by), local_);
    }
    return result;
  }

 private:
  const Expression& value(std::size_t operand) const { return operands_[operand].value; }
  const MaybeZero& by(std::size_t operand, std::size_t slot) const {
    return operands_[operand].by[slot];
  }
  bool depends(std::size_t operand) const {
    for (const MaybeZero& by : operands_[operand].by) {
      if (by) return true;
    }
    return false;
  }
  Expression by_or_0(std::size_t operand, std::size_t slot) const {
    return operands_[operand].by_or_0(slot);
  }

  void keep(Partial partial) {
    partial.factor = local_(std::move(partial.factor));
    partials_.push_back(std::move(partial));
  }

  void keep(Expression condition) { conditions_.push_back(local_(std::move(condition))); }

  // What all slots share.
  void prepare(const Expression& y) {
    switch (op_) {
      case Op::add:
      case Op::subtract:
      case Op::multiply:
      case Op::divide:
        return;
      case Op::minimum:
      case Op::maximum: {
        const auto [less, greater] = std::pair(value(0), value(1));
        const Op first_loses = op_ == Op::minimum ? Op::greater : Op::less;
        const Op second_loses = op_ == Op::minimum ? Op::less : Op::greater;
        keep(either(apply(first_loses, {less, greater}), is_nan(less)));
        keep(either(apply(second_loses, {less, greater}), is_nan(greater)));
        return;
      }
      case Op::clamp:
        keep(apply(Op::greater, {value(0), value(2)}));
        keep(apply(Op::greater_equal, {value(0), value(1)}));
        keep(apply(Op::greater, {value(1), value(2)}));
        return;
      case Op::floor_remainder:
        if (depends(1)) keep(Partial{negated(apply(Op::floor_quotient, {value(0), value(1)}))});
        return;
      case Op::pow:
        return prepare_power(y);
      default:
        keep(partial_of(op_, value(0), y));
    }
  }

  void prepare_power(const Expression& y) {
    const Expression zero = floating(0);
    const Expression& x = value(0);
    const Expression& n = value(1);
    const Expression raised = apply(Op::pow, {x, difference(n, floating(1))});
    keep(Partial{pick(apply(Op::equal, {n, zero}), zero, product(n, raised)), true});
    if (!depends(1)) return;
    const Expression is_flat =
        apply(Op::logical_and, {apply(Op::equal, {x, zero}), apply(Op::greater_equal, {n, zero})});
    keep(Partial{pick(is_flat, zero, product(y, call(Op::log, x))), true});
  }

  MaybeZero times(const MaybeZero& by, const Partial& partial) const {
    if (!by) return by;
    Expression all = product(*by, partial.factor);
    if (!partial.may_be_infinite || by->op == Op::floating_literal) return all;
    return pick(apply(Op::equal, {*by, floating(0)}), floating(0), std::move(all));
  }

  MaybeZero derivative(std::size_t slot, const Expression& y) const {
    const bool has_none =
        std::none_of(operands_.begin(), operands_.end(),
                     [&](const Slopes& operand) { return operand.by[slot].has_value(); });
    if (has_none) return std::nullopt;
    switch (op_) {
      case Op::add:
        return added(by(0, slot), by(1, slot));
      case Op::subtract:
        return taken_away(by(0, slot), by(1, slot));
      case Op::multiply:
        return added(times(by(0, slot), {value(1)}), times(by(1, slot), {value(0)}));
      case Op::divide:
        return of_quotient(slot, y);
      case Op::minimum:
      case Op::maximum:
        return of_extreme(slot);
      case Op::clamp:
        return of_clamp(slot);
      case Op::floor_remainder:
        return depends(1) ? added(by(0, slot), times(by(1, slot), partials_[0])) : by(0, slot);
      case Op::pow:
        return partials_.size() > 1
                   ? added(times(by(0, slot), partials_[0]), times(by(1, slot), partials_[1]))
                   : times(by(0, slot), partials_[0]);
      default:
        return times(by(0, slot), partials_[0]);
    }
  }

  static MaybeZero taken_away(const MaybeZero& a, const MaybeZero& b) {
    if (!b) return a;
    return a ? difference(*a, *b) : negated(*b);
  }

  MaybeZero of_quotient(std::size_t slot, const Expression& y) const {
    const MaybeZero above = taken_away(by(0, slot), times(by(1, slot), {y}));
    if (is_usual_number(value(1))) return product(floating(1 / value(1).number), *above);
    if (above->op == Op::floating_literal) return quotient(*above, value(1));
    const Expression named = local_(*above);
    return pick(apply(Op::equal, {named, floating(0)}), floating(0), quotient(named, value(1)));
  }

  MaybeZero of_extreme(std::size_t slot) const {
    const Expression a = by_or_0(0, slot), b = by_or_0(1, slot);
    if (a == b) return a;
    const Expression shared = local_(product(floating(0.5), *added(by(0, slot), by(1, slot))));
    return pick(conditions_[0], b, local_(pick(conditions_[1], a, shared)));
  }

  // min(max(x, low), high): beyond a bound its derivative is the bound's.
  MaybeZero of_clamp(std::size_t slot) const {
    const Expression low = local_(pick(conditions_[2], by_or_0(2, slot), by_or_0(1, slot)));
    const Expression inner = local_(pick(conditions_[1], by_or_0(0, slot), low));
    return pick(conditions_[0], by_or_0(2, slot), inner);
  }

  Op op_;
  const std::vector<Slopes>& operands_;
  const std::function<Expression(Expression)>& local_;
  std::vector<Partial> partials_ = {};
  std::vector<Expression> conditions_ = {};
};

}  // namespace

Expression as_floating(Expression value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 24;  // up to there a float is any integer
  if (value.op == Op::integer_literal && value.integer >= -kExact && value.integer <= kExact) {
    return floating(static_cast<double>(value.integer));
  }
  return converted(std::move(value), Type::floating);
}

Expression with_name(Expression by, const std::function<Expression(Expression)>& local) {
  Multiple parts = multiple_of(std::move(by));
  if (parts.rest) parts.rest = local(*std::move(parts.rest));
  return multiplied(parts);
}

bool has_no_slope(Op op) {
  return op == Op::floor || op == Op::ceil || op == Op::sign || op == Op::floor_quotient;
}

Slopes apply_rule(Op op, const std::vector<Slopes>& operands,
                  const std::function<Expression(Expression)>& local) {
  return Rule(op, operands, local).run();
}

}  // namespace tilewright::snippet
