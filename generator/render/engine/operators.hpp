#pragma once

#include "ast.hpp"
#include "complaint.hpp"
#include "value.hpp"

namespace tilewright::jinja {

// Every function here throws Complaint where the types do not fit, a result overflows or the budget
// is used up. bool is no number.

Value apply_unary(UnaryOperator op, const Value& operand);
/// Integers follow Python: // and % round towards minus infinity; / must be exact.
Value apply_binary(BinaryOperator op, const Value& left, const Value& right, Budget& budget);
bool apply_comparison(Comparison op, const Value& left, const Value& right, Budget& budget);

/// Equality of values of one type; int and float compare as numbers.
bool equal(const Value& left, const Value& right, Budget& budget);
/// Order of numbers or of strings.
bool less(const Value& left, const Value& right);

/// What `if` decides by: Python's rule that zero and what is empty are false.
bool is_true(const Value& value);

/// The value's type with its article, for messages: "a list", "an int", "none".
std::string a_type(const Value& value);

}  // namespace tilewright::jinja
