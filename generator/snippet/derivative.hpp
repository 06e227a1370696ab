#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../spec/spec.hpp"
#include "tree.hpp"

namespace tilewright::snippet {

/// A value that a snippet depends on and that a derivative is taken by.
struct DerivativeSlot {
  enum class Kind : std::uint8_t {
    score,
    scalar,  ///< an f32 scalar
    read,    ///< one read of a floating buffer, where the text has it
  };
  Kind kind = Kind::score;
  std::string name = {};                 ///< of the scalar or the buffer
  std::vector<Expression> indices = {};  ///< of a read, without locals
};

/// What a derivative is wanted by.
struct DerivativeWish {
  bool by_score = true;
  std::set<std::string> names = {};  ///< floating buffers and f32 scalars
};

/// The name that derivatives are assigned to: `tw_by[0]` for the first slot.
inline constexpr const char* kDerivativeName = "tw_by";

/// A snippet that also computes its derivatives, in forward mode. Each branch that is taken carries
/// its derivatives, so a branch that is not taken contributes nothing, not even a NaN.
///
/// Where the snippet has a kink, docs/gradients.md says which derivative it has: a tie of min or
/// max is shared by halves, clamp has the derivative of the value that it gives and 1 at a bound,
/// abs has 0 at 0, and floor, ceil, sign, floor_div, comparisons and conversions to integers have
/// 0.
struct Derivative {
  std::vector<DerivativeSlot> slots = {};
  /// Before each `return`, `tw_by[i] = ...;` for each slot.
  std::vector<Statement> statements = {};
  /// Whether each derivative is this number wherever the snippet returns: 0 or 1.
  std::vector<std::optional<double>> constants = {};

  /// The snippet that returns the derivative by one slot in place of its value.
  SnippetTree returning(std::size_t slot) const;
};

/// The derivative of a score_mod; none if the tree does not say it: the snippet is opaque or has a
/// lambda, or a wanted buffer is read in a loop or at indices that may have changed at the end.
std::optional<Derivative> differentiate(const SnippetTree& tree, const DerivativeWish& wish);

}  // namespace tilewright::snippet
