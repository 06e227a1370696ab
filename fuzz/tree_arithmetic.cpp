#include "fuzz/tree_arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace tilewright::verify::fuzz {
namespace {

std::int64_t checked_int(std::int64_t value) {
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    fail_tree(fmt::format("overflows: {}", value));
  }
  return value;
}

std::int64_t shifted_left(std::int64_t value, std::int64_t distance) {
  if (distance < 0 || distance > 31) fail_tree(fmt::format("shifts by {}", distance));
  return checked_int(value * (std::int64_t{1} << distance));
}

std::int64_t shifted_right(std::int64_t value, std::int64_t distance) {
  if (distance < 0 || distance > 31) fail_tree(fmt::format("shifts by {}", distance));
  return value >> distance;
}

std::int64_t rounded_down(std::int64_t a, std::int64_t b) {
  if (b == 0) fail_tree("divides by 0");
  const std::int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// The third is of clamp alone.
std::int64_t of_integers(Op op, std::int64_t a, std::int64_t b, std::int64_t c) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
    case Op::remainder:
      if (b == 0) fail_tree("divides by 0");
      return op == Op::divide ? a / b : a % b;
    case Op::floor_quotient:
      return rounded_down(a, b);
    case Op::floor_remainder:
      return a - rounded_down(a, b) * b;
    case Op::sign:
      return (a > 0) - (a < 0);
    case Op::negate:
      return -a;
    case Op::shift_left:
      return shifted_left(a, b);
    case Op::shift_right:
      return shifted_right(a, b);
    case Op::bit_and:
      return a & b;
    case Op::bit_or:
      return a | b;
    case Op::bit_xor:
      return a ^ b;
    case Op::minimum:
      return std::min(a, b);
    case Op::maximum:
      return std::max(a, b);
    case Op::absolute:
      return a < 0 ? -a : a;
    case Op::clamp:
      return std::min(std::max(a, b), c);
    default:
      fail_tree("does " + std::string(to_string(op)) + " with integers");
  }
}

template <typename T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::less:
      return a < b;
    case Op::less_equal:
      return a <= b;
    case Op::greater:
      return a > b;
    case Op::greater_equal:
      return a >= b;
    case Op::equal:
      return a == b;
    default:
      return a != b;
  }
}

// Where one is NaN, the other, as C's fmin and fmax.
template <typename Score>
Score smaller(Score a, Score b) {
  return std::isnan(a) || b < a ? b : a;
}
template <typename Score>
Score greater(Score a, Score b) {
  return std::isnan(a) || b > a ? b : a;
}

// Python's, by way of the exact remainder.
template <typename Score>
Score floor_remainder(Score a, Score b) {
  const Score rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <typename Score>
Score floor_quotient(Score a, Score b) {
  const Score rest = std::fmod(a, b);
  const Score cut = std::nearbyint((a - rest) / b);
  return rest != 0 && (rest < 0) != (b < 0) ? cut - 1 : cut;
}

template <typename Score>
Score function_of(Op op, Score a) {
  switch (op) {
    case Op::expm1:
      return std::expm1(a);
    case Op::log1p:
      return std::log1p(a);
    case Op::erf:
      return std::erf(a);
    case Op::erfc:
      return std::erfc(a);
    case Op::tanh:
      return std::tanh(a);
    case Op::exp:
      return std::exp(a);
    case Op::exp2:
      return std::exp2(a);
    case Op::log:
      return std::log(a);
    case Op::log2:
      return std::log2(a);
    case Op::rsqrt:
      return 1 / std::sqrt(a);
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::tan:
      return std::tan(a);
    default:
      fail_tree("does " + std::string(to_string(op)) + " with numbers");
  }
}

// docs/math.md: the greatest error in units of 2^-24 of the result; 0: exact.
double units_of_error(Op op) {
  switch (op) {
    case Op::exp:
    case Op::exp2:
    case Op::log:
    case Op::sin:
    case Op::cos:
      return 2;
    case Op::log2:
    case Op::rsqrt:
    case Op::erf:
    case Op::expm1:
    case Op::log1p:
      return 4;
    case Op::erfc:
      return 10;
    case Op::tanh:
      return 6;
    default:
      return 0;
  }
}

}  // namespace

void fail_tree(const std::string& message) {
  throw Error(ErrorCode::internal, "the tree of a snippet " + message);
}

template <typename Score>
TreeValue<Score> TreeArithmetic<Score>::apply(Op op, Type type, const Value* x,
                                              std::size_t count) const {
  switch (op) {
    case Op::logical_not:
      return Value::of_truth(x[0].integer == 0);
    case Op::select:
      return (x[0].integer != 0 ? x[1] : x[2]).converted_to(type);
    case Op::to_floating:
      return Value::of_number(x[0].as_number());
    case Op::to_integer:
    case Op::to_wide:
      return x[0].converted_to(Type::integer);
    case Op::to_truth:
      return Value::of_truth(x[0].as_number() != 0);
    case Op::times_2_to_32:
      return Value::of_integer(x[0].integer * (std::int64_t{1} << 32));
    case Op::to_unsigned:
      return Value::of_integer(static_cast<std::uint32_t>(x[0].integer));
    case Op::to_wide_unsigned:
      return Value::of_integer(x[0].integer < 0 ? std::numeric_limits<std::int64_t>::max()
                                                : x[0].integer);
    default:
      break;
  }
  const bool any_number =
      std::any_of(x, x + count, [](const Value& value) { return value.type == Type::floating; });
  if (op >= Op::less && op <= Op::not_equal) {
    return Value::of_truth(any_number ? compare(op, x[0].as_number(), x[1].as_number())
                                      : compare(op, x[0].integer, x[1].integer));
  }
  if (type == Type::floating) return Value::of_number(of_numbers(op, x));
  if (type == Type::wide) {
    return Value::of_integer(of_integers(op, x[0].integer, x[1].integer, x[2].integer));
  }
  return Value::of_integer(checked_int(of_integers(op, x[0].integer, x[1].integer, x[2].integer)));
}

template <typename Score>
Score TreeArithmetic<Score>::of_numbers(Op op, const Value* x) const {
  const Score a = x[0].as_number();
  switch (op) {
    case Op::add:
      return a + x[1].as_number();
    case Op::subtract:
      return a - x[1].as_number();
    case Op::multiply:
      return a * x[1].as_number();
    case Op::divide:
      return a / x[1].as_number();
    case Op::negate:
      return -a;
    case Op::minimum:
      return smaller(a, x[1].as_number());
    case Op::maximum:
      return greater(a, x[1].as_number());
    case Op::floor_quotient:
      return floor_quotient(a, x[1].as_number());
    case Op::floor_remainder:
      return floor_remainder(a, x[1].as_number());
    case Op::sign:
      return a > 0 ? Score{1} : a < 0 ? Score{-1} : a;
    case Op::absolute:
      return std::fabs(a);
    case Op::clamp:
      return smaller(greater(a, x[1].as_number()), x[2].as_number());
    case Op::sqrt:
      return std::sqrt(a);
    case Op::pow:
      return std::pow(a, x[1].as_number());
    case Op::floor:
      return std::floor(a);
    case Op::ceil:
      return std::ceil(a);
    default:
      return with_error(op, a, function_of(op, a));
  }
}

// The error depends on the argument alone, as a function's does.
template <typename Score>
Score TreeArithmetic<Score>::with_error(Op op, Score argument, Score result) const {
  if (errors_.factor == 0) return result;
  std::uint64_t hash = std::bit_cast<std::uint64_t>(static_cast<double>(argument)) ^
                       (errors_.seed + static_cast<std::uint64_t>(op)) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash ^= hash >> 31;
  const double share = static_cast<double>(hash >> 11) * 0x1p-52 - 1;
  const double units = errors_.factor * units_of_error(op) * share;
  return static_cast<Score>(static_cast<double>(result) * (1 + units * 0x1p-24));
}

template class TreeArithmetic<float>;
template class TreeArithmetic<double>;

}  // namespace tilewright::verify::fuzz
