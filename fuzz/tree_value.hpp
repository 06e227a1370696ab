#pragma once

#include <cstdint>
#include <string>

#include "expression.hpp"

namespace tilewright::verify::fuzz {

/// Ends the evaluation of a snippet's tree.
/// @throws Error with code internal: "the tree of a snippet " and the message
[[noreturn]] void fail_tree(const std::string& message);

/// What an expression of a snippet's tree comes to; floating numbers have the interpretation's
/// type.
template <typename Score>
struct TreeValue {
  Type type = Type::integer;
  std::int64_t integer = 0;  ///< of an integer or a truth
  Score number = 0;

  static TreeValue of_integer(std::int64_t value) {
    return {.type = Type::integer, .integer = value};
  }
  static TreeValue of_truth(bool value) { return {.type = Type::truth, .integer = value ? 1 : 0}; }
  static TreeValue of_number(Score value) { return {.type = Type::floating, .number = value}; }

  Score as_number() const { return type == Type::floating ? number : static_cast<Score>(integer); }

  /// As a variable of that type takes it.
  /// @throws Error as fail_tree for a number as an integer
  TreeValue converted_to(Type wanted) const {
    if (wanted == Type::floating) return of_number(as_number());
    if (wanted == type || wanted == Type::unknown) return *this;
    if (type == Type::floating) fail_tree("turns a number into an integer");
    return wanted == Type::truth ? of_truth(integer != 0) : of_integer(integer);
  }
};

}  // namespace tilewright::verify::fuzz
