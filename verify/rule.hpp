#pragma once

#include "../runtime/api/attention.hpp"
#include "judge.hpp"

namespace tilewright::verify {

/// What results of the attention are judged by.
/// @param max_abs_score greatest of Reference::max_abs_scores, of rows of which something is judged
Rule rule_for(const Attention& attention, double max_abs_score);

}  // namespace tilewright::verify
