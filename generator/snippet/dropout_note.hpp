#pragma once

#include <optional>
#include <span>
#include <string>

#include "../spec/spec.hpp"
#include "notes.hpp"

namespace tilewright {

struct ProbabilityNote {
  std::string message;
  std::string hint;
};

/// What a dropout of that value does that its author may not mean; nothing of a probability from 0
/// to below 1.
/// @param text how the message writes the value: "1.5f", "1 in head 3"
std::optional<ProbabilityNote> probability_note(double value, const std::string& text);

/// The same of a dropout that reads a call's scalars or buffers, of the first head that has such a
/// value. What is written as a number alone is snippet_notes()'.
/// @param of_heads dropout of each head
std::optional<SnippetNote> dropout_note(const Spec& spec, std::span<const double> of_heads);

}  // namespace tilewright
