#include "generator/render/engine/operators.hpp"

#include <compare>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace tilewright::jinja {
namespace {

std::int64_t floor_divide(std::int64_t left, std::int64_t right) {
  const std::int64_t quotient = left / right;
  return quotient - (left % right != 0 && (left < 0) != (right < 0) ? 1 : 0);
}

std::int64_t floor_modulo(std::int64_t left, std::int64_t right) {
  const std::int64_t rest = left % right;
  return rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest;
}

std::int64_t calculate(std::string_view op, std::int64_t left, std::int64_t right) {
  const bool divides = op == "//" || op == "%";
  if (divides && right == 0) throw Complaint{"division by zero"};
  if (op == "%") return right == -1 ? 0 : floor_modulo(left, right);
  std::int64_t result = 0;
  const bool overflows = op == "+"   ? __builtin_add_overflow(left, right, &result)
                         : op == "-" ? __builtin_sub_overflow(left, right, &result)
                         : op == "*"
                             ? __builtin_mul_overflow(left, right, &result)
                             : right == -1 && left == std::numeric_limits<std::int64_t>::min();
  if (overflows) throw Complaint{fmt::format("{} {} {} does not fit in 64 bits", left, op, right)};
  return op == "//" ? floor_divide(left, right) : result;
}

bool has_order(std::string_view op) {
  return op == "<" || op == "<=" || op == ">" || op == ">=";
}

bool compare(std::string_view op, const Value& left, const Value& right) {
  if (left.as_int() && right.as_int()) {
    const auto order = *left.as_int() <=> *right.as_int();
    return op == "=="   ? std::is_eq(order)
           : op == "!=" ? std::is_neq(order)
           : op == "<"  ? std::is_lt(order)
           : op == "<=" ? std::is_lteq(order)
           : op == ">"  ? std::is_gt(order)
                        : std::is_gteq(order);
  }
  const bool bools = left.as_bool() && right.as_bool();
  const bool strings = left.as_string() && right.as_string();
  if (has_order(op) || (!bools && !strings)) {
    const bool none = left.is_none() || right.is_none();
    throw Complaint{
        fmt::format("`{}` cannot compare {} with {}", op, left.a_type(), right.a_type()),
        none ? "write `is none`" : "two ints can be; `==` takes two strings or two bools, too"};
  }
  const bool equal =
      bools ? *left.as_bool() == *right.as_bool() : *left.as_string() == *right.as_string();
  return equal == (op == "==");
}

std::string concatenate(const Value& left, const Value& right, Budget& budget) {
  std::string text = left.text() + right.text();
  if (text.size() > kMaxStringBytes) throw Complaint{"a string is longer than 16 MiB"};
  budget.charge_bytes(text.size());
  return text;
}

}  // namespace

Value apply_operator(std::string_view op, const Value& left, const Value& right, Budget& budget) {
  if (op == "~") return concatenate(left, right, budget);
  if (op == "==" || op == "!=" || has_order(op)) return compare(op, left, right);
  if (left.as_int() && right.as_int()) return calculate(op, *left.as_int(), *right.as_int());
  const bool joins = op == "+" && (left.as_string() || right.as_string());
  throw Complaint{fmt::format("`{}` cannot take {} and {}", op, left.a_type(), right.a_type()),
                  joins ? "write `~` to join texts" : "both must be ints"};
}

}  // namespace tilewright::jinja
