#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "derivative.hpp"
#include "spec_facts.hpp"

namespace tilewright {

/// What the cell that a read with a gradient takes depends on.
enum class GradientPattern : std::uint8_t {
  head,        ///< neither row nor column
  row,         ///< the row of q
  column,      ///< the column
  difference,  ///< the difference of the two alone
  element,     ///< both, or the score
};

/// The pattern's name in templates/snippet/derivative.hpp.jinja.
std::string_view to_string(GradientPattern pattern);

GradientPattern pattern_of(const snippet::DerivativeSlot& slot);

/// Whether each difference of q_idx and kv_idx takes another cell, as far as it is in bounds: the
/// index that names it is a sum, as `kv_idx - q_idx + q_len - 1` is and a clamped one is not.
/// @param slot  of the pattern difference
bool has_cell_for_each_difference(const snippet::DerivativeSlot& slot);

/// Whether a derivative is a finite number whatever arguments, buffers and scalars hold, as far as
/// the text says it.
/// @param slot  of the derivative
bool is_finite(const snippet::Derivative& derivative, std::size_t slot);

/// Whether the derivative by the score is a finite number wherever the modified score is no NaN, as
/// far as the text says it. `20 * tanh(score / 20)` has such a derivative.
bool is_bounded(const snippet::Derivative& by_score);

/// Whether a derivative may be 0 because a branch was not taken: then it gives nothing, even where
/// what it would be multiplied by is NaN.
/// @param slot  of the derivative
bool is_branched(const snippet::Derivative& derivative, std::size_t slot);

/// The sums of gradients of the buffers and scalars that a spec names: terms dY * g, where g is the
/// modified score's derivative by what was read.
struct GradientTerms {
  /// The modified score's derivative by the score is 1, and no g depends on the score.
  bool adds_to_score = false;
  std::vector<GradientPattern> patterns = {};  ///< of each scalar and read
};

/// None where a derivative is unknown; empty without names or score_mod.
std::optional<GradientTerms> gradient_terms(const SpecFacts& facts);

/// Reads by the difference whose terms the portable kernel sums along diagonals, each in shared
/// separate memory: at most kMostDiagonals.
inline constexpr std::int64_t kMostDiagonals = 2;
std::int64_t portable_diagonals(const GradientTerms& terms);

/// A score_mod whose text does not say a derivative that the spec's gradients need.
struct UnknownDerivative {
  std::string message;
  std::size_t begin;  ///< byte of the snippet's text
};

/// None where the spec names no gradients.
std::optional<UnknownDerivative> unknown_derivative(const SpecFacts& facts);

/// @throws Error with code snippet where there is one: its place, and how score_mod is to be
/// written
void require_known_derivative(const SpecFacts& facts);

}  // namespace tilewright
