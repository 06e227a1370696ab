#pragma once

#include <string>
#include <vector>

#include "parts.hpp"
#include "slopes_evaluator.hpp"
#include "snippet_evaluator.hpp"

namespace tilewright::verify {

/// Compares score_mod's derivative by the score with central differences in double, on a few rows
/// and where score_mod is smooth.
/// @param pieces that have rows and columns
/// @return where they differ, or where the derivative of an element that mask_mod keeps is NaN or
///         infinite where the differences are finite; empty where neither is so
std::string find_wrong_derivative(const std::vector<const Parts::Piece*>& pieces,
                                  const DoubleInterpretation& snippets,
                                  const SlopesEvaluator<double>& slopes);

}  // namespace tilewright::verify
