#pragma once

#include <string_view>

#include "tree.hpp"

namespace tilewright::snippet {

/// C++'s precedences, the greater the tighter.
enum Precedence : int {
  kConditional = 1,
  kOr,
  kAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kUnary,
  kPrimary,
};

/// An operator between two operands.
struct Infix {
  Op op;
  std::string_view sign;
  std::string_view word;  ///< the alternative token, `and`; empty: none
  int precedence;
};

/// Null if the operation is no such operator, or the text none.
const Infix* find_infix(Op op);
const Infix* find_infix(std::string_view text);

}  // namespace tilewright::snippet
