#pragma once

#include "../spec/spec.hpp"
#include "notes.hpp"
#include "snippet.hpp"

namespace tilewright {

/// What a scale that is NaN or infinite, or an out_scale near 0, does to a check.
/// @param kind  q_scale, k_scale, v_scale or out_scale
/// @param value one that a call gives it
SnippetNote scale_note(const Spec& spec, SnippetKind kind, double value);

}  // namespace tilewright
