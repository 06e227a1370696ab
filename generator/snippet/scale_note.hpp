#pragma once

#include "../spec/spec.hpp"
#include "notes.hpp"
#include "snippet.hpp"

namespace tilewright {

/// What a scale of q, k or v that is NaN or infinite does to a check.
/// @param kind  q_scale, k_scale or v_scale
/// @param value one that a call gives it
SnippetNote scale_note(const Spec& spec, SnippetKind kind, double value);

}  // namespace tilewright
