#include "generator/render/engine/operators.hpp"

#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tilewright::jinja {
namespace {

constexpr std::array<std::string_view, 7> kBinarySymbols = {"+", "-", "*", "/", "//", "%", "**"};
constexpr std::array<std::string_view, 8> kComparisonSymbols = {
    "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

std::string_view symbol(BinaryOperator op) {
  return kBinarySymbols[static_cast<std::size_t>(op)];
}

[[noreturn]] void fail_overflow(BinaryOperator op, std::int64_t left, std::int64_t right) {
  throw Complaint{fmt::format("{} {} {} does not fit in 64 bits", left, symbol(op), right)};
}

[[noreturn]] void fail_zero() {
  throw Complaint{"division by zero"};
}

std::int64_t floor_divide(std::int64_t left, std::int64_t right) {
  if (right == 0) fail_zero();
  if (right == -1 && left == std::numeric_limits<std::int64_t>::min()) {
    fail_overflow(BinaryOperator::floor_divide, left, right);
  }
  const std::int64_t quotient = left / right;
  return quotient - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
}

std::int64_t floor_modulo(std::int64_t left, std::int64_t right) {
  if (right == 0) fail_zero();
  if (right == -1) return 0;
  const std::int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

std::int64_t exact_divide(std::int64_t left, std::int64_t right) {
  if (right != 0 && floor_modulo(left, right) != 0) {
    throw Complaint{
        fmt::format("{} / {} is not exact", left, right),
        fmt::format("write `//` to round down, or make one of them a float: {}.0", left)};
  }
  return floor_divide(left, right);
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    throw Complaint{fmt::format("{} ** {} is not an integer", base, exponent),
                    fmt::format("make the base a float: {}.0", base)};
  }
  // Bases of which every power fits; for others at most 63 rounds pass before one overflows.
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) {
      fail_overflow(BinaryOperator::power, base, exponent);
    }
  }
  return result;
}

std::int64_t apply_integers(BinaryOperator op, std::int64_t left, std::int64_t right) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOperator::add:
      overflow = __builtin_add_overflow(left, right, &result);
      break;
    case BinaryOperator::subtract:
      overflow = __builtin_sub_overflow(left, right, &result);
      break;
    case BinaryOperator::multiply:
      overflow = __builtin_mul_overflow(left, right, &result);
      break;
    case BinaryOperator::divide:
      return exact_divide(left, right);
    case BinaryOperator::floor_divide:
      return floor_divide(left, right);
    case BinaryOperator::modulo:
      return floor_modulo(left, right);
    case BinaryOperator::power:
      return integer_power(left, right);
  }
  if (overflow) fail_overflow(op, left, right);
  return result;
}

double float_modulo(double left, double right) {
  const double rest = std::fmod(left, right);
  if (rest != 0) return (rest < 0) != (right < 0) ? rest + right : rest;
  return std::copysign(0.0, right);
}

double float_floor_divide(double left, double right) {
  const double quotient = (left - float_modulo(left, right)) / right;
  return quotient == 0 ? std::copysign(0.0, left / right) : std::round(quotient);
}

double apply_floats(BinaryOperator op, double left, double right) {
  const bool divides = op == BinaryOperator::divide || op == BinaryOperator::floor_divide ||
                       op == BinaryOperator::modulo;
  if (divides && right == 0) fail_zero();
  switch (op) {
    case BinaryOperator::add:
      return left + right;
    case BinaryOperator::subtract:
      return left - right;
    case BinaryOperator::multiply:
      return left * right;
    case BinaryOperator::divide:
      return left / right;
    case BinaryOperator::floor_divide:
      return float_floor_divide(left, right);
    case BinaryOperator::modulo:
      return float_modulo(left, right);
    case BinaryOperator::power:
      break;
  }
  const double result = std::pow(left, right);
  if (std::isnan(result) && !std::isnan(left) && !std::isnan(right)) {
    throw Complaint{fmt::format("{} ** {} is not a real number", left, right)};
  }
  return result;
}

bool is_number(const Value& value) {
  return value.as_int() || value.as_float();
}

double as_double(const Value& value) {
  return value.as_int() ? static_cast<double>(*value.as_int()) : *value.as_float();
}

// -1, 0, 1, or 2 where one is NaN. An int and a float are compared exactly, as in Python.
int compare_numbers(const Value& left, const Value& right) {
  const auto* a = left.as_int();
  const auto* b = right.as_int();
  if (a && b) return *a < *b ? -1 : *a > *b ? 1 : 0;
  if (a || !b) {
    const double y = as_double(right);
    if (!a) {
      const double x = *left.as_float();
      return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
    }
    if (std::isnan(y)) return 2;
    if (y >= 0x1p63) return -1;
    if (y < -0x1p63) return 1;
    const auto whole = static_cast<std::int64_t>(y);
    if (*a != whole) return *a < whole ? -1 : 1;
    const double fraction = y - static_cast<double>(whole);
    return fraction > 0 ? -1 : fraction < 0 ? 1 : 0;
  }
  const int swapped = compare_numbers(right, left);
  return swapped == 2 ? 2 : -swapped;
}

bool equal_lists(const List& left, const List& right, Budget& budget) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!equal(left[i], right[i], budget)) return false;
  }
  return true;
}

bool equal_maps(const Map& left, const Map& right, Budget& budget) {
  if (left.size() != right.size()) return false;
  for (auto a = left.begin(), b = right.begin(); a != left.end(); ++a, ++b) {
    if (a->first != b->first || !equal(a->second, b->second, budget)) return false;
  }
  return true;
}

[[noreturn]] void fail_comparison(std::string_view op, const Value& left, const Value& right) {
  const bool none = left.is_none() || right.is_none();
  throw Complaint{fmt::format("`{}` cannot compare {} with {}", op, a_type(left), a_type(right)),
                  none ? "write `is none`" : "convert one of them: |int, |float or `~ \"\"`"};
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  if (const auto* list = container.as_list()) {
    for (const Value& candidate : *list) {
      if (equal(item, candidate, budget)) return true;
    }
    return false;
  }
  const auto* text = item.as_string();
  if (const auto* map = container.as_map(); map && text) return map->count(*text) > 0;
  if (const auto* whole = container.as_string(); whole && text) {
    budget.charge_bytes(whole->size());
    return whole->find(*text) != std::string::npos;
  }
  throw Complaint{fmt::format("`in` cannot look for {} in {}", a_type(item), a_type(container)),
                  "`in` takes a list, a map's key, or a string within a string"};
}

}  // namespace

Value apply_unary(UnaryOperator op, const Value& operand) {
  if (op == UnaryOperator::logical_not) return !is_true(operand);
  if (!is_number(operand)) {
    throw Complaint{fmt::format("`{}` needs a number and got {}",
                                op == UnaryOperator::minus ? '-' : '+', a_type(operand))};
  }
  if (op == UnaryOperator::plus) return operand;
  if (const auto* number = operand.as_float()) return -*number;
  return apply_integers(BinaryOperator::subtract, 0, *operand.as_int());
}

Value apply_binary(BinaryOperator op, const Value& left, const Value& right, Budget& budget) {
  if (left.as_int() && right.as_int()) return apply_integers(op, *left.as_int(), *right.as_int());
  if (is_number(left) && is_number(right))
    return apply_floats(op, as_double(left), as_double(right));
  if (op == BinaryOperator::add && left.as_string() && right.as_string()) {
    const std::size_t size = left.as_string()->size() + right.as_string()->size();
    budget.charge_bytes(size);
    if (size > kMaxStringBytes) throw Complaint{"a string is longer than 16 MiB"};
    return *left.as_string() + *right.as_string();
  }
  if (op == BinaryOperator::add && left.as_list() && right.as_list()) {
    List joined = *left.as_list();
    joined.insert(joined.end(), right.as_list()->begin(), right.as_list()->end());
    budget.charge(static_cast<std::int64_t>(joined.size()));
    if (joined.size() > kMaxItems) {
      throw Complaint{fmt::format("a list has more than {} items", kMaxItems)};
    }
    return joined;
  }
  const bool text = left.as_string() || right.as_string();
  throw Complaint{
      fmt::format("`{}` cannot take {} and {}", symbol(op), a_type(left), a_type(right)),
      op == BinaryOperator::add && text ? "write `~` to join texts"
                                        : "convert with |int or |float"};
}

bool equal(const Value& left, const Value& right, Budget& budget) {
  budget.charge();
  if (is_number(left) && is_number(right)) return compare_numbers(left, right) == 0;
  if (left.type_name() != right.type_name()) fail_comparison("==", left, right);
  if (left.is_none()) return true;
  if (left.as_bool()) return *left.as_bool() == *right.as_bool();
  if (left.as_string()) {
    budget.charge_bytes(left.as_string()->size());
    return *left.as_string() == *right.as_string();
  }
  if (left.as_list()) return equal_lists(*left.as_list(), *right.as_list(), budget);
  if (left.as_map()) return equal_maps(*left.as_map(), *right.as_map(), budget);
  fail_comparison("==", left, right);
}

bool less(const Value& left, const Value& right) {
  if (is_number(left) && is_number(right)) {
    const int order = compare_numbers(left, right);
    if (order == 2) throw Complaint{"nan has no place in an order"};
    return order < 0;
  }
  if (left.as_string() && right.as_string()) return *left.as_string() < *right.as_string();
  fail_comparison("<", left, right);
}

bool apply_comparison(Comparison op, const Value& left, const Value& right, Budget& budget) {
  if (op == Comparison::in) return contains(right, left, budget);
  if (op == Comparison::not_in) return !contains(right, left, budget);
  if (op == Comparison::eq) return equal(left, right, budget);
  if (op == Comparison::ne) return !equal(left, right, budget);
  if (is_number(left) && is_number(right)) {
    const int order = compare_numbers(left, right);
    if (order == 2) return false;
    return op == Comparison::lt   ? order < 0
           : op == Comparison::le ? order <= 0
           : op == Comparison::gt ? order > 0
                                  : order >= 0;
  }
  if (!left.as_string() || !right.as_string()) {
    fail_comparison(kComparisonSymbols[static_cast<std::size_t>(op)], left, right);
  }
  budget.charge_bytes(left.as_string()->size());
  const int order = left.as_string()->compare(*right.as_string());
  return op == Comparison::lt   ? order < 0
         : op == Comparison::le ? order <= 0
         : op == Comparison::gt ? order > 0
                                : order >= 0;
}

bool is_true(const Value& value) {
  if (value.is_none()) return false;
  if (const auto* truth = value.as_bool()) return *truth;
  if (const auto* number = value.as_int()) return *number != 0;
  if (const auto* number = value.as_float()) return *number != 0;
  if (const auto* text = value.as_string()) return !text->empty();
  if (const auto* list = value.as_list()) return !list->empty();
  if (const auto* map = value.as_map()) return !map->empty();
  return true;
}

std::string a_type(const Value& value) {
  if (value.is_none()) return "none";
  return fmt::format("{} {}", value.as_int() ? "an" : "a", value.type_name());
}

}  // namespace tilewright::jinja
