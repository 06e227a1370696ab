#include "generator/render/engine/value_tests.hpp"

#include <fmt/format.h>

#include "generator/render/engine/operators.hpp"

namespace tilewright::jinja {
namespace {

std::int64_t integer(const Value& value, std::string_view test) {
  if (const auto* number = value.as_int()) return *number;
  throw Complaint{fmt::format("the test {} needs an int and got {}", test, a_type(value))};
}

bool is_divisible(const Value& value, const Value* argument, Budget&) {
  const std::int64_t divisor = integer(*argument, "divisibleby");
  if (divisor == 0) throw Complaint{"division by zero"};
  return divisor == -1 || integer(value, "divisibleby") % divisor == 0;
}

bool is_power_of_two(const Value& value, const Value*, Budget&) {
  const std::int64_t number = integer(value, "pow2");
  return number > 0 && (number & (number - 1)) == 0;
}

template <Comparison kOperator>
bool compare(const Value& value, const Value* argument, Budget& budget) {
  return apply_comparison(kOperator, value, *argument, budget);
}

using V = const Value&;
using A = const Value*;

constexpr ValueTest kTests[] = {
    {"defined", false, nullptr},
    {"undefined", false, nullptr},
    {"none", false, [](V v, A, Budget&) { return v.is_none(); }},
    {"boolean", false, [](V v, A, Budget&) { return v.as_bool() != nullptr; }},
    {"true", false, [](V v, A, Budget&) { return v.as_bool() && *v.as_bool(); }},
    {"false", false, [](V v, A, Budget&) { return v.as_bool() && !*v.as_bool(); }},
    {"number", false, [](V v, A, Budget&) { return v.as_int() || v.as_float(); }},
    {"integer", false, [](V v, A, Budget&) { return v.as_int() != nullptr; }},
    {"float", false, [](V v, A, Budget&) { return v.as_float() != nullptr; }},
    {"string", false, [](V v, A, Budget&) { return v.as_string() != nullptr; }},
    {"list", false, [](V v, A, Budget&) { return v.as_list() != nullptr; }},
    {"mapping", false, [](V v, A, Budget&) { return v.as_map() != nullptr; }},
    {"callable", false, [](V v, A, Budget&) { return v.as_function() != nullptr; }},
    {"even", false, [](V v, A, Budget&) { return integer(v, "even") % 2 == 0; }},
    {"odd", false, [](V v, A, Budget&) { return integer(v, "odd") % 2 != 0; }},
    {"pow2", false, is_power_of_two},
    {"divisibleby", true, is_divisible},
    {"in", true, compare<Comparison::in>},
    {"eq", true, compare<Comparison::eq>},
    {"ne", true, compare<Comparison::ne>},
    {"lt", true, compare<Comparison::lt>},
    {"le", true, compare<Comparison::le>},
    {"gt", true, compare<Comparison::gt>},
    {"ge", true, compare<Comparison::ge>},
};

}  // namespace

const ValueTest* find_value_test(std::string_view name) {
  for (const ValueTest& test : kTests) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

std::vector<std::string> value_test_names() {
  std::vector<std::string> names;
  for (const ValueTest& test : kTests) names.emplace_back(test.name);
  return names;
}

}  // namespace tilewright::jinja
