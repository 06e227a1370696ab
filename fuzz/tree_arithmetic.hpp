#pragma once

#include <cstddef>
#include <cstdint>

#include "expression.hpp"
#include "tree_value.hpp"

namespace tilewright::verify::fuzz {

/// How exactly the interpreter computes elementary functions.
struct FunctionErrors {
  /// Each result is off by up to this many times docs/math.md's figure, in either direction; 0: by
  /// the C library's error alone. For samples of naive: a float interpretation may be as wrong as
  /// that.
  double factor = 0;
  std::uint64_t seed = 0;
};

/// What the operations of a snippet's tree do with the values of their operands.
template <typename Score>
class TreeArithmetic {
 public:
  using Value = TreeValue<Score>;

  explicit TreeArithmetic(const FunctionErrors& errors) : errors_(errors) {}

  /// @param type of the result
  /// @param operands at least three, of which `count` mean something
  /// @throws Error as fail_tree where an int overflows, is divided by 0 or shifted too far
  Value apply(Op op, Type type, const Value* operands, std::size_t count) const;

 private:
  Score of_numbers(Op op, const Value* x) const;
  Score with_error(Op op, Score argument, Score result) const;

  FunctionErrors errors_;
};

extern template class TreeArithmetic<float>;
extern template class TreeArithmetic<double>;

}  // namespace tilewright::verify::fuzz
