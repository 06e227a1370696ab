#pragma once

#include "../runtime/api/attention.hpp"
#include "judge.hpp"

namespace tilewright::verify {

/// What results of the attention are judged by.
/// @param sizes Reference::sizes
Rule rule_for(const Attention& attention, BoundSizes sizes);

}  // namespace tilewright::verify
