#include "generator/snippet/operators.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/enum_names.hpp"

namespace tilewright::snippet {
namespace {

#define TILEWRIGHT_ROW(op, name, text, precedence, operands, takes, result) \
  {Op::op, name, text, precedence, operands, Takes::takes, result},
#define TILEWRIGHT_REAL_ROW(op) {Op::op, #op, #op, kPrimary, 1, Takes::real, Type::floating},
constexpr Operation kOperations[] = {
    TILEWRIGHT_SNIPPET_OPERATIONS(TILEWRIGHT_ROW, TILEWRIGHT_REAL_ROW)};
#undef TILEWRIGHT_ROW
#undef TILEWRIGHT_REAL_ROW

constexpr std::array<std::pair<Type, std::string_view>, 5> kTypes = {{{Type::integer, "int"},
                                                                      {Type::floating, "float"},
                                                                      {Type::truth, "bool"},
                                                                      {Type::wide, "long long"},
                                                                      {Type::unknown, "unknown"}}};

const Operation* find(const auto& is_wanted) {
  const auto* const found = std::find_if(std::begin(kOperations), std::end(kOperations), is_wanted);
  return found == std::end(kOperations) ? nullptr : found;
}

}  // namespace

std::string_view to_string(Type type) {
  return name_in(kTypes, type);
}

std::span<const Operation> operations() {
  return kOperations;
}

const Operation& operation(Op op) {
  return kOperations[static_cast<std::size_t>(op)];
}

std::string_view to_string(Op op) {
  return operation(op).name;
}

const Operation* find_infix(std::string_view text) {
  return find([&](const Operation& x) { return x.is_infix() && x.text == text; });
}

std::vector<std::string> function_names(const Operation& operation) {
  const std::string name(operation.text);
  if (operation.op < Op::minimum || operation.op > Op::select) return {};
  if (operation.takes == Takes::real) return {name, name + "f"};
  const bool is_of_both =
      operation.op == Op::minimum || operation.op == Op::maximum || operation.op == Op::absolute;
  if (is_of_both) return {name, "f" + name, "f" + name + "f"};
  return {name};
}

Op conversion_to(Type type) {
  return find([&](const Operation& x) { return x.is_conversion() && x.result == type; })->op;
}

}  // namespace tilewright::snippet
